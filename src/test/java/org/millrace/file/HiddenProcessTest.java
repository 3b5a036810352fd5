package org.millrace.file;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.plugin.HostProgram;

/** Living processes that {@code /proc} does not show, and their files. */
@Timeout(120)
@Tag("slow")
@Tag("root")
class HiddenProcessTest {

    private static final Path SHARED = Path.of("/dev/shm");
    /**
     * Shell script that starts two processes. Other processes of the same user may not inspect the first process. The
     * second process ends at once.
     */
    private static final String TWO = String.join(" ", OtherUser.as(OtherUser.FIRST, "+net_raw"))
            + " sleep 1000 & export HIDDEN=$!; true & export GONE=$!; wait $GONE\n"
            + "while [ \"$(cat /proc/$HIDDEN/comm)\" != sleep ]; do :; done\n"
            + "export TICKS=$(cut -d' ' -f22 /proc/$HIDDEN/stat)";

    @BeforeEach
    void possible() throws Exception {
        OtherUser.assumePossible();
        OwnNamespace.assumePossible();
    }

    /**
     * Depending on the case, {@code /proc} shows all processes, hides some processes, is empty, or belongs to another
     * namespace. A dead process is recognized only if process numbers are meaningful.
     */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"true|true|true|false true|HIDDEN",
                    "mount -o remount,hidepid=2 /proc|true|false|false true|HIDDEN",
                    "mount -t tmpfs none /proc|false|false|false false|GONE HIDDEN",
                    "umount /proc|false|true|false false|GONE HIDDEN"})
    void aHiddenProcessIsNotDead(String proc, boolean known, boolean seen, String dead, String left) throws Exception {
        List<String> command = new ArrayList<>(OwnNamespace.after(TWO, proc));
        command.addAll(OtherUser.as(OtherUser.FIRST));
        Path java = Path.of(System.getProperty("java.home"));
        // Without this path, the dynamic linker would read /proc to find Java's libraries.
        Collections.addAll(command, "env", "LD_LIBRARY_PATH=" + java.resolve("lib"),
                java.resolve("bin").resolve("java").toString(), "-Xint", "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), Child.class.getName());
        Process child = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        List<String> told = child.inputReader().lines().toList();
        assertEquals(List.of("namespace known: " + known, "seen: " + seen, "dead: " + dead, "left: " + left), told);
        assertEquals(0, child.waitFor());
    }

    /** When a program exits, C code deletes files of dead processes. */
    @ParameterizedTest
    @ValueSource(strings = {"true", "mount -o remount,hidepid=2 /proc"})
    void filesOfAHiddenProcessStay(String proc) throws Exception {
        String files = "for pid in $HIDDEN $GONE; do install -m 600 -o " + OtherUser.FIRST + " /dev/null /dev/shm/"
                + "millrace-0123456789abcdef-$pid-$TICKS-$(readlink /proc/self/ns/pid | tr -dc 0-9).sock; done";
        List<String> starter = new ArrayList<>(OwnNamespace.after(TWO, files, proc));
        Collections.addAll(starter, "sh", "-c", "\"$@\"; echo HIDDEN is $HIDDEN; ls /dev/shm", "sh");
        starter.addAll(OtherUser.as(OtherUser.FIRST));
        var outcome = HostProgram.compile("exit_host").startedBy(starter).run(HostProgram.library(), "return");
        Matcher left =
                Pattern.compile("(?s).*\nOK\nHIDDEN is (\\d+)\nmillrace-0123456789abcdef-(\\d+)-[0-9-]*\\.sock\n")
                        .matcher(outcome.output());
        assertTrue(left.matches(), outcome.output());
        assertEquals(left.group(1), left.group(2), outcome.output());
    }

    /** Examines the processes that the environment variables HIDDEN and GONE name. */
    static final class Child {

        private Child() {}

        public static void main(String[] arguments) throws Exception {
            ProcessIdentity here = ProcessIdentity.CURRENT;
            long pid = Long.parseLong(System.getenv("HIDDEN"));
            long ticks = here.namespace() == 0 ? 0 : Long.parseLong(System.getenv("TICKS"));
            ProcessIdentity hidden = new ProcessIdentity(pid, ticks, here.namespace());
            ProcessIdentity gone = new ProcessIdentity(Long.parseLong(System.getenv("GONE")), ticks, here.namespace());
            Files.createFile(SHARED.resolve(new FileName(1, hidden, FileName.SOCKET).toString()));
            Files.createFile(SHARED.resolve(new FileName(2, gone, FileName.SOCKET).toString()));
            System.out.println("namespace known: " + (here.namespace() != 0));
            System.out.println("seen: " + Files.exists(Path.of("/proc/" + pid + "/stat")));
            System.out.println("dead: " + hidden.isProvablyDead() + " " + gone.isProvablyDead());
            StaleFiles.sweep(SHARED);
            System.out.println("left: " + left(hidden, gone));
        }

        private static String left(ProcessIdentity hidden, ProcessIdentity gone) throws IOException {
            try (Stream<Path> files = Files.list(SHARED)) {
                return String.join(" ",
                        files.map(file -> FileName.parse(file.getFileName().toString()).owner())
                                .map(owner -> owner.equals(hidden) ? "HIDDEN" : owner.equals(gone) ? "GONE" : "?")
                                .sorted()
                                .toList());
            }
        }
    }
}
