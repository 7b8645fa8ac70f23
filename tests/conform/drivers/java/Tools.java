// Kafka's command-line tools in one JVM, one after the other: `java Tools`.
//
// Reads a JSON line {"class": ..., "args": [...], "stdin": ...} and answers one {"exit": n, "stdout": ..., "stderr": ...}. A tool that would
// end its JVM ends its call; what it leaves for the JVM's end (shutdown hooks) is run then. Starting a JVM for each call is most of what a
// call costs.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

public final class Tools {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static Integer exit;

    /** What a tool's exit becomes. Some tools catch it and would go on: what they print from here on is lost, and the first code counts. */
    private static final class Ended extends Error {
        Ended(int code) {
            if (exit == null) {
                exit = code;
                System.setOut(new PrintStream(OutputStream.nullOutputStream()));
                System.setErr(new PrintStream(OutputStream.nullOutputStream()));
            }
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<Runnable> hooks = new ArrayList<>();
        Exit.setExitProcedure((code, message) -> {
            throw new Ended(code);
        });
        Exit.setHaltProcedure((code, message) -> {
            throw new Ended(code);
        });
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            answers.println(JSON.writeValueAsString(call(JSON.readTree(line), hooks)));
            answers.flush();
        }
        System.exit(0);
    }

    private static ObjectNode call(JsonNode command, List<Runnable> hooks) throws Exception {
        String[] args = JSON.convertValue(command.get("args"), String[].class);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        System.setIn(new ByteArrayInputStream(command.path("stdin").asText("").getBytes(StandardCharsets.UTF_8)));
        hooks.clear();
        PrintStream toolOut = System.out;
        PrintStream toolErr = System.err;
        exit = null;
        try {
            Method main = Class.forName(command.get("class").asText()).getMethod("main", String[].class);
            main.invoke(null, (Object) args);
        } catch (InvocationTargetException error) {
            if (exit == null) {
                exit = 1;
                System.err.print("Exception in thread \"main\" ");
                error.getCause().printStackTrace();
            }
        }
        System.setOut(toolOut);
        System.setErr(toolErr);
        for (Runnable hook : hooks) {
            hook.run();
        }
        System.out.flush();
        ObjectNode answer = JSON.createObjectNode();
        answer.put("exit", exit == null ? 0 : exit);
        answer.put("stdout", out.toString(StandardCharsets.UTF_8));
        answer.put("stderr", err.toString(StandardCharsets.UTF_8));
        return answer;
    }
}
