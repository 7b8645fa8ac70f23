import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** Answers a line for each line: a certificate's name, or a name that rules map. Everything is in hex. */
public class Naming {
    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            out.println(answer(words));
        }
        out.flush();
    }

    private static String answer(String[] words) {
        try {
            String text = words[0].equals("name")
                ? new X500Principal(bytes(words[1])).getName()
                : SslPrincipalMapper.fromRules(text(words[1])).getName(text(words[2]));
            return HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
        } catch (Exception failure) {
            return "! " + failure.getClass().getSimpleName();
        }
    }

    private static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex);
    }

    private static String text(String hex) {
        return new String(bytes(hex), StandardCharsets.UTF_8);
    }
}
