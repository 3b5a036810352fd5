package org.millrace.cli.run;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import org.junit.jupiter.api.Test;

/** No secret may be among a process's arguments, because all users of a host can read them. */
class SecretWordsTest {

    @Test
    void aSecretIsNoneOfThem() {
        for (List<String> set : List.of(List.of("-D", "MILLRACE_SECRET=b=c"), List.of("-DMILLRACE_SECRET=b=c"),
                List.of("-D=MILLRACE_SECRET=b=c"))) {
            List<String> command = new java.util.ArrayList<>(
                    List.of("java", "-Dmillrace.secret=a", "Main", "perf", "-D", "MILLRACE_NET=shm"));
            command.addAll(set);
            command.add("-D");
            ProcessBuilder builder = JavaCommand.builder(command);
            assertEquals(List.of("java", "Main", "perf", "-D", "MILLRACE_NET=shm", "-D"), builder.command());
            assertEquals("b=c", builder.environment().get("MILLRACE_SECRET"), "the last is the strongest");
        }
    }
}
