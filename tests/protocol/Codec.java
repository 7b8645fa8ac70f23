import java.io.*;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;

/** Reads lines of "class version hex"; answers each with what Kafka writes for the message it read, or an error. */
public class Codec {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] parts = line.split(" ", -1);
            short version = Short.parseShort(parts[1]);
            try {
                ByteBuffer buffer = ByteBuffer.wrap(HexFormat.of().parseHex(parts[2]));
                Message message = (Message) Class.forName(parts[0]).getConstructor(Readable.class, short.class)
                    .newInstance(new ByteBufferAccessor(buffer), version);
                ByteBuffer written = MessageUtil.toByteBufferAccessor(message, version).buffer();
                byte[] bytes = new byte[written.remaining()];
                written.get(bytes);
                System.out.println(buffer.remaining() + " " + HexFormat.of().formatHex(bytes));
            } catch (Exception error) {
                System.out.println("error " + (error.getCause() == null ? error : error.getCause()));
            }
        }
    }
}
