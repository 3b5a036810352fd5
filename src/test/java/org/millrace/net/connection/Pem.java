package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** An authority and a certificate that it issued, as an operator creates them with openssl. */
record Pem(Path certificate, Path key, Path authority) {

    static Pem make(Path directory, String kind) throws IOException, InterruptedException {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/openssl")), "no openssl");
        Files.createDirectories(directory);
        List<String> key = switch (kind) {
            case "rsa" -> List.of("-newkey", "rsa:2048");
            case "ec" -> List.of("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256");
            default -> List.of("-newkey", kind);
        };
        openssl(directory, with(key, "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=job", "-keyout", "ca.key",
                "-out", "ca.pem"));
        openssl(directory, with(key, "req", "-nodes", "-subj", "/CN=rank", "-keyout", "rank.key", "-out", "rank.csr"));
        openssl(directory, List.of("x509", "-req", "-in", "rank.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                "-CAcreateserial", "-days", "2", "-out", "rank.pem"));
        return new Pem(directory.resolve("rank.pem"), directory.resolve("rank.key"), directory.resolve("ca.pem"));
    }

    private static List<String> with(List<String> more, String... words) {
        List<String> all = new ArrayList<>(Arrays.asList(words));
        all.addAll(more);
        return all;
    }

    private static void openssl(Path directory, List<String> words) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("/usr/bin/openssl"));
        command.addAll(words);
        Process process = new ProcessBuilder(command).directory(directory.toFile()).redirectErrorStream(true).start();
        String said = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), said);
    }

    String[] settings() {
        return new String[] {"MILLRACE_TLS", "1", "MILLRACE_TLS_CERTIFICATE", certificate.toString(),
                "MILLRACE_TLS_KEY", key.toString(), "MILLRACE_TLS_CA", authority.toString()};
    }
}
