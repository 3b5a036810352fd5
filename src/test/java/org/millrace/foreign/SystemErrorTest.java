package org.millrace.foreign;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.IOException;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NoRouteToHostException;
import java.net.ServerSocket;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Millrace recognizes system errors, whatever the language of their messages. */
class SystemErrorTest {

    /** Prints the errors of a refused connection and of a pipe without a reader. */
    static final class Errors {

        private Errors() {}

        public static void main(String[] arguments) throws Exception {
            int port;
            try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                port = socket.getLocalPort();
            }
            try (SocketChannel channel = SocketChannel.open()) {
                channel.socket().connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 10_000);
            } catch (ConnectException e) {
                System.out.println(e.getMessage());
                System.out.println(SystemError.isRefusal(e));
            }
            Process reader = new ProcessBuilder("sh", "-c", "exec 0<&-; echo; exec sleep 60").start();
            reader.getInputStream().read();
            try (OutputStream pipe = reader.getOutputStream()) {
                pipe.write(1);
            } catch (IOException e) {
                System.out.println(SystemError.BROKEN_PIPE.isReasonOf(e));
            }
            reader.destroyForcibly();
        }
    }

    private static List<String> errors(String language) throws Exception {
        ProcessBuilder builder = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), Errors.class.getName()).redirectErrorStream(true);
        builder.environment().put("LC_ALL", "C.UTF-8");
        builder.environment().put("LANGUAGE", language);
        return builder.start().inputReader(StandardCharsets.UTF_8).lines().toList();
    }

    @Test
    void aRefusalAndABrokenPipeAreRecognizedInEnglish() throws Exception {
        assertEquals(List.of("Connection refused", "true", "true"), errors("en"));
    }

    @Test
    void aRefusalAndABrokenPipeAreRecognizedInGerman() throws Exception {
        List<String> lines = errors("de");
        assumeFalse(lines.getFirst().equals("Connection refused"), "the C library has no German texts");
        assertEquals(List.of("true", "true"), lines.subList(1, lines.size()));
    }

    @Test
    void anUnansweredConnectionIsNoRefusal() {
        assertFalse(SystemError.isRefusal(new ConnectException("Connection timed out")));
        assertFalse(SystemError.isRefusal(new NoRouteToHostException("No route to host")));
        assertFalse(SystemError.isRefusal(new IOException("Connection refused")));
        assertTrue(SystemError.isRefusal(new ConnectException("Verbindungsaufbau abgelehnt")));
        assertTrue(SystemError.NETWORK_UNREACHABLE.isReasonOf(new IOException("Network is unreachable")));
        assertFalse(SystemError.TIMED_OUT.isReasonOf(null));
        assertFalse(SystemError.TIMED_OUT.isReasonOf(new IOException()));
    }

    /** With {@code jdk.includeInExceptions=hostInfo} the JDK appends the host and the port. */
    @Test
    void anErrorIsRecognizedWithTheHost() {
        assertFalse(SystemError.isRefusal(new ConnectException("Connection timed out: b2:4000")));
        assertTrue(SystemError.isRefusal(new ConnectException("Connection refused: b2:4000")));
    }
}
