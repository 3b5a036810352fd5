package org.millrace.file;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** Runs programs in namespaces with separate processes, mounts and /dev/shm. */
public final class OwnNamespace {

    private OwnNamespace() {}

    /** Returns a prefix for a command. The command then runs in separate namespaces, after the given shell lines. */
    public static List<String> after(String... steps) {
        return List.of("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec",
                "mount -t tmpfs -o mode=1777 none /dev/shm\n" + String.join("\n", steps) + "\nexec \"$@\"", "sh");
    }

    /** Skips a test where no namespaces can be created. */
    public static void assumePossible() throws Exception {
        assumePossible(after());
    }

    static void assumePossible(List<String> starter) throws Exception {
        String refusal;
        try {
            List<String> command = new ArrayList<>(starter);
            command.add("true");
            Process tried = new ProcessBuilder(command).redirectErrorStream(true).start();
            refusal = tried.inputReader().lines().collect(Collectors.joining(" "));
            assumeTrue(tried.waitFor() == 0, () -> starter.getFirst() + " cannot be had here: " + refusal);
        } catch (IOException e) {
            assumeTrue(false, starter.getFirst() + " cannot be had here: " + e.getMessage());
        }
    }
}
