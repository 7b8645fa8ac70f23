import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.internals.CidrUtils;

/**
 * Answers questions with Kafka's own authorizer: one line in, one line out for those that ask.
 *
 *   N  super users, allow if no ACL (true, false)                            a new authorizer
 *   A  id, type, name, pattern, principal, host, operation, permission       an ACL
 *   R  id                                                                    is removed
 *   Q  operation, type, name, principal type, principal name, address        may he? the address as Java writes it, yes or no, the rule
 *   T  operation, type, principal type, principal name, address              may he on any resource of the type? yes or no
 *   V  host                                                                  is it a range? ok, or why not
 *
 * Fields are separated by tabs, numbers are Kafka's.
 */
public class Deciding {
    private static final Metrics METRICS = new Metrics();
    private static PluginMetricsImpl pluginMetrics;
    private static StandardAuthorizer authorizer;
    private static List<String> superUsers;
    private static Field data;
    private static Method find;

    public static void main(String[] args) throws Exception {
        data = StandardAuthorizer.class.getDeclaredField("data");
        data.setAccessible(true);
        for (Method method : data.getType().getDeclaredMethods()) {
            if (method.getName().equals("findAclRule")) {
                find = method;
            }
        }
        find.setAccessible(true);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8), 1 << 16);
        String line;
        while ((line = in.readLine()) != null) {
            String answer = answer(line.split("\t", -1));
            if (answer != null) {
                out.write(answer);
                out.write('\n');
            }
        }
        out.flush();
    }

    private static String answer(String[] f) throws Exception {
        switch (f[0]) {
            case "N":
                superUsers = List.of(f[1].split(";"));
                authorizer = new StandardAuthorizer();
                authorizer.configure(Map.of(StandardAuthorizer.SUPER_USERS_CONFIG, f[1],
                    StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, f[2]));
                if (pluginMetrics != null) {
                    pluginMetrics.close();
                }
                pluginMetrics = new PluginMetricsImpl(METRICS, Map.of());
                authorizer.withPluginMetrics(pluginMetrics);
                authorizer.completeInitialLoad();
                return null;
            case "A":
                authorizer.addAcl(id(f[1]), new StandardAcl(ResourceType.fromCode(code(f[2])), f[3], PatternType.fromCode(code(f[4])),
                    f[5], f[6], AclOperation.fromCode(code(f[7])), AclPermissionType.fromCode(code(f[8]))));
                return null;
            case "R":
                authorizer.removeAcl(id(f[1]));
                return null;
            case "Q": {
                Action action = new Action(AclOperation.fromCode(code(f[1])),
                    new ResourcePattern(ResourceType.fromCode(code(f[2])), f[3], PatternType.LITERAL), 1, false, false);
                Asking asking = new Asking(new KafkaPrincipal(f[4], f[5]), InetAddress.getByName(f[6]));
                boolean allowed = authorizer.authorize(asking, List.of(action)).get(0) == AuthorizationResult.ALLOWED;
                String host = asking.clientAddress().getHostAddress();
                // The search for ACLs comes after the question whether a super user asks.
                Object rule = superUsers.contains(asking.principal().toString()) ? "SuperUser" : find.invoke(data.get(authorizer),
                    Set.of(asking.principal(), new KafkaPrincipal("User", "*")), host, action);
                return host + "\t" + yes(allowed) + "\t" + rule;
            }
            case "T": {
                Asking asking = new Asking(new KafkaPrincipal(f[3], f[4]), InetAddress.getByName(f[5]));
                return yes(authorizer.authorizeByResourceType(asking, AclOperation.fromCode(code(f[1])),
                    ResourceType.fromCode(code(f[2]))) == AuthorizationResult.ALLOWED);
            }
            case "V":
                try {
                    CidrUtils.validate(f[1]);
                    return "ok";
                } catch (IllegalArgumentException error) {
                    return error.getMessage();
                }
            default:
                throw new IllegalArgumentException(f[0]);
        }
    }

    private static String yes(boolean is) {
        return is ? "yes" : "no";
    }

    private static byte code(String text) {
        return Byte.parseByte(text);
    }

    private static Uuid id(String text) {
        return new Uuid(1, Long.parseLong(text));
    }

    private record Asking(KafkaPrincipal principal, InetAddress clientAddress) implements AuthorizableRequestContext {
        @Override
        public String listenerName() {
            return "EXTERNAL";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.SASL_SSL;
        }

        @Override
        public int requestType() {
            return 0;
        }

        @Override
        public int requestVersion() {
            return 0;
        }

        @Override
        public String clientId() {
            return "";
        }

        @Override
        public int correlationId() {
            return 0;
        }
    }
}
