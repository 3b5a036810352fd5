package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.bootstrap.FreePort;
import org.millrace.file.OtherUser;
import org.millrace.namespace.SummingRank;

/** Ranks of users other than root, in a directory in which all users create files. */
@Timeout(180)
@Tag("slow")
@Tag("root")
class OrdinaryUserTest {

    @TempDir
    Path folder;
    private final List<Process> children = new ArrayList<>();

    @BeforeEach
    void makeRoomForAll() throws Exception {
        OtherUser.assumePossible();
        folder = OtherUser.openToAll(folder.resolve("all"));
    }

    @AfterEach
    void endChildren() throws InterruptedException {
        for (Process child : children) {
            // The child deletes its own files. Processes of this test's user do not delete the child's files.
            child.destroy();
            assertTrue(child.waitFor(30, TimeUnit.SECONDS));
        }
    }

    private BufferedReader start(int user, int rank, String... settings) throws IOException {
        return start(AllReduceRank.class, folder.toString(), user, rank, settings);
    }

    private BufferedReader start(Class<?> program, String group, int user, int rank, String... settings)
            throws IOException {
        List<String> command = new ArrayList<>(OtherUser.as(user));
        Collections.addAll(command, Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx64m", "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), program.getName(), group, "" + rank, "2", "MILLRACE_TRACE=off");
        Collections.addAll(command, settings);
        Process child = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        children.add(child);
        return child.inputReader(StandardCharsets.UTF_8);
    }

    @ParameterizedTest
    @ValueSource(strings = {"MILLRACE_NET=auto", "MILLRACE_NET=shm", "MILLRACE_NET=socket"})
    void ranksOfOneMeetByAFile(String setting) throws Exception {
        BufferedReader zero = start(OtherUser.FIRST, 0, setting, "NCCL_P2P_DISABLE=1");
        BufferedReader one = start(OtherUser.FIRST, 1, setting, "NCCL_P2P_DISABLE=1");
        assertEquals("running", zero.readLine());
        assertEquals("running", one.readLine());
    }

    @Test
    void aRankOfAnotherUserIsRefusedAndTheFileStays() throws Exception {
        BufferedReader zero = start(OtherUser.FIRST, 0);
        Path file = folder.resolve("group");
        while (!Files.exists(file)) {
            assertTrue(children.getFirst().isAlive(), () -> zero.lines().toList().toString());
            LockSupport.parkNanos(1_000_000);
        }
        String content = Files.readString(file);
        for (int rank = 0; rank < 2; rank++) {
            String told = start(OtherUser.SECOND, rank).readLine();
            assertTrue(told.contains(file + " is not trusted as a rendezvous file: it is the file of user "
                    + OtherUser.FIRST + ", and this process runs as user " + OtherUser.SECOND
                    + "; it has to be a regular file of this user or of root."), told);
            assertEquals(content, Files.readString(file));
        }
        BufferedReader one = start(OtherUser.FIRST, 1);
        assertEquals("running", zero.readLine());
        assertEquals("running", one.readLine());
    }

    /** The ranks share no memory, because neither user may open the files of the other. */
    @ParameterizedTest
    @ValueSource(strings = {"MILLRACE_NET=auto", "NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1"})
    void ranksOfTwoUsersMeetOverTcp(String setting) throws Exception {
        int port = FreePort.find();
        List<BufferedReader> ranks = new ArrayList<>();
        for (int user : new int[] {OtherUser.FIRST, OtherUser.SECOND}) {
            ranks.add(start(SummingRank.class, "tcp:127.0.0.1:" + port, user, ranks.size(), setting,
                    "MILLRACE_SECRET=of both"));
        }
        for (BufferedReader rank : ranks) {
            assertEquals("all right over [NET auto]", rank.readLine());
        }
    }
}
