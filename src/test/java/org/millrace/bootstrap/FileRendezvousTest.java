package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.FutureTask;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.MillraceException;
import org.millrace.file.User;

/** Files that rank 0 may find at the rendezvous path, and files that it leaves there. */
@Timeout(120)
class FileRendezvousTest {

    private static final Duration LITTLE = Duration.ofMillis(400);

    @TempDir
    Path folder;
    private Path path;
    private String rendezvous;

    @BeforeEach
    void choosePath() {
        path = folder.resolve("group");
        rendezvous = "file:" + path;
    }

    @AfterEach
    void noThreadIsLeftBehind() {
        Ranks.assertNoThreadLeft();
    }

    private void assertNoFileIsLeft() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            assertEquals(List.of(), files.toList());
        }
    }

    private static FileRendezvous.RendezvousFile fileOf(int port) {
        return new FileRendezvous.RendezvousFile(new InetSocketAddress(InetAddress.getLoopbackAddress(), port),
                Secret.randomHex(), 7, new RankIdentity(0, 99, "elsewhere"));
    }

    private void completes() throws Exception {
        // rank 1 may start first, and read the old content of the file
        FutureTask<ControlPlane> one = Ranks.async(() -> ControlPlane.join(rendezvous, 1, 2, Ranks.TIMEOUT));
        try (ControlPlane zero = ControlPlane.join(rendezvous, 0, 2, Ranks.TIMEOUT);
                ControlPlane second = Ranks.get(one)) {
            assertNull(zero.failure());
            assertNull(second.failure());
        }
        assertNoFileIsLeft();
    }

    @Test
    void onlyTheOwnerCanReadTheFile() throws Exception {
        FutureTask<ControlPlane> zero = Ranks.async(() -> ControlPlane.join(rendezvous, 0, 2, Ranks.TIMEOUT));
        Ranks.await("rank 0 writes its file", () -> Files.exists(path));
        assertEquals(Set.of(PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE),
                Files.getPosixFilePermissions(path));
        FileRendezvous.RendezvousFile file = FileRendezvous.RendezvousFile.read(path).orElseThrow();
        assertTrue(file.address().getAddress().isLoopbackAddress());
        assertTrue(file.secret().matches("[0-9a-f]{32}"), "16 random bytes");
        assertEquals(2, file.size());
        assertEquals(new RankIdentity(0, ProcessHandle.current().pid(), Machine.NAME), file.owner());
        assertFalse(file.toString().contains(file.secret()), "messages do not show the secret");
        ControlPlane.join(rendezvous, 1, 2, Ranks.TIMEOUT).close();
        Ranks.get(zero).close();
        assertNoFileIsLeft();
    }

    @Test
    void rankZeroOfANamedRunDeletesItsFile() throws Exception {
        JoinOptions options = JoinOptions.within(Ranks.TIMEOUT).ofOneRun();
        FutureTask<ControlPlane> zero = Ranks.async(() -> ControlPlane.join(rendezvous, 0, 2, options));
        ControlPlane.join(rendezvous, 1, 2, options).close();
        Ranks.get(zero).close();
        assertNoFileIsLeft();
    }

    @Test
    void aFileThatLeadsNowhereIsReplaced() throws Exception {
        fileOf(Ranks.freePort()).publish(path);
        completes();
    }

    @Test
    void aFileThatLeadsToAnotherProtocolIsReplaced() throws Exception {
        try (ServerSocket stranger = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            FutureTask<Void> greeter = Ranks.async(() -> {
                while (true) {
                    try (var socket = stranger.accept()) {
                        socket.getOutputStream().write("SSH-2.0-OpenSSH_9.2\r\n".getBytes());
                    } catch (IOException e) {
                        return null;
                    }
                }
            });
            fileOf(stranger.getLocalPort()).publish(path);
            completes();
            assertFalse(greeter.isDone());
        }
    }

    @Test
    void aFileThatLeadsToAnotherGroupIsReplaced() throws Exception {
        int port = Ranks.freePort();
        FutureTask<ControlPlane> other =
                Ranks.async(() -> ControlPlane.join("tcp:127.0.0.1:" + port, 0, 2, Ranks.TIMEOUT));
        RawRank.connect("tcp:127.0.0.1:" + port).close();
        fileOf(port).publish(path);
        completes();
        ControlPlane.join("tcp:127.0.0.1:" + port, 1, 2, Ranks.TIMEOUT).close();
        Ranks.get(other).close();
    }

    /**
     * The user who creates the rendezvous file decides which group the ranks join, so another user's file is refused.
     */
    @Test
    void aFileOfAnotherUserIsNotTrusted() throws Exception {
        fileOf(Ranks.freePort()).publish(path);
        int owner = (int) Files.getAttribute(path, "unix:uid");
        assertTrue(FileRendezvous.RendezvousFile.read(path, owner).isPresent());
        if (owner == 0) {
            Files.setAttribute(path, "unix:uid", 4712); // files that root owns are valid for all users
            owner = 4712;
        }
        String message = assertThrows(MillraceException.class, () -> FileRendezvous.RendezvousFile.read(path, 4711))
                .getMessage();
        assertTrue(
                message.startsWith(path + " is not trusted as a rendezvous file: it is the file of user " + owner
                        + ", and this process runs as user 4711; it has to be a regular file of this user or of root."),
                message);
        Files.delete(path);
    }

    @Tag("root")
    @Test
    void rootTrustsNoFileOfAnotherUserAndAllTrustRoot() throws Exception {
        assumeTrue(User.ID == 0, "only root can make files for others");
        fileOf(Ranks.freePort()).publish(path);
        assertTrue(FileRendezvous.RendezvousFile.read(path, 4711).isPresent());
        Files.setAttribute(path, "unix:uid", 4712);
        for (int rank = 0; rank < 2; rank++) {
            int self = rank;
            assertTrue(
                    assertThrows(MillraceException.class, () -> ControlPlane.join(rendezvous, self, 2, Ranks.TIMEOUT))
                            .getMessage()
                            .contains("it is the file of user 4712, and this process runs as user 0"));
        }
        Files.delete(path);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void aLinkIsNotFollowed(int rank) throws Exception {
        Path target = folder.resolve("target");
        fileOf(Ranks.freePort()).publish(target);
        Files.createSymbolicLink(path, target);
        String message =
                assertThrows(MillraceException.class, () -> ControlPlane.join(rendezvous, rank, 2, Ranks.TIMEOUT))
                        .getMessage();
        assertTrue(message.contains(path + " is not trusted as a rendezvous file: it is a symbolic link"), message);
        assertTrue(Files.isSymbolicLink(path) && Files.exists(target));
    }

    /** A pipe at the rendezvous path is not opened. An open would wait for a writer, even beyond the deadline. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void aPipeIsNotOpened(int rank) throws Exception {
        assertEquals(0, new ProcessBuilder("mkfifo", path.toString()).start().waitFor());
        FutureTask<ControlPlane> joining = Ranks.async(() -> ControlPlane.join(rendezvous, rank, 2, Ranks.TIMEOUT));
        String message = Ranks.failureOf(joining);
        assertTrue(message.contains(path + " is not trusted as a rendezvous file: it is no regular file"), message);
    }

    @Test
    void anEmptyFileIsAName() throws Exception {
        Files.createFile(path);
        completes();
    }

    @Test
    void aFileInUseIsNot() throws Exception {
        FutureTask<ControlPlane> zero = Ranks.async(() -> ControlPlane.join(rendezvous, 0, 2, Ranks.TIMEOUT));
        Ranks.await("rank 0 writes its file", () -> Files.exists(path));
        FileRendezvous.RendezvousFile file = FileRendezvous.RendezvousFile.read(path).orElseThrow();
        String message = assertThrows(MillraceException.class, () -> ControlPlane.join(rendezvous, 0, 3, Ranks.TIMEOUT))
                .getMessage();
        assertTrue(message.startsWith(
                "rank 0 cannot use " + path + ": another group is using it, the group of 2 ranks whose rank 0 is pid "),
                message);
        assertEquals(file, FileRendezvous.RendezvousFile.read(path).orElseThrow(), "the file is untouched");
        ControlPlane.join(rendezvous, 1, 2, Ranks.TIMEOUT).close();
        Ranks.get(zero).close();
        assertNoFileIsLeft();
    }

    @Test
    void aFileWhoseListenerIsSilentCountsAsInUse() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            fileOf(silent.getLocalPort()).publish(path);
            String message = assertThrows(MillraceException.class, () -> ControlPlane.join(rendezvous, 0, 2, LITTLE))
                    .getMessage();
            assertTrue(
                    message.contains(
                            "another group is using it, the group of 7 ranks whose rank 0 is pid 99 on elsewhere"),
                    message);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"model weights", "millrace-rendezvous=2\n",
                    "millrace-rendezvous=1\naddress=127.0.0.1\nport=1\nsecret=00\nsize=2\npid=1\n",
                    "millrace-rendezvous=1\naddress=127.0.0.1\nport=99999\nsecret=00\nsize=2\npid=1\nhost=h\n",
                    "millrace-rendezvous=1\naddress=127.0.0.1\nport=x\nsecret=00\nsize=2\npid=1\nhost=h\n",
                    "millrace-rendezvous=1\n\\uXXXX",
                    "millrace-rendezvous=1\naddress=127.0.0.1\nport=4711\nsecret=00\nsize=0\npid=1\nhost=node\n",
                    "millrace-rendezvous=1\naddress=127.0.0.1\nport=0\nsecret=00\nsize=2\npid=1\nhost=node\n",
                    "millrace-rendezvous=1\naddress=node.invalid\nport=4711\nsecret=00\nsize=2\npid=1\nhost=node\n"})
    void anotherFileIsNotTouched(String content) throws Exception {
        Files.writeString(path, content);
        for (int rank = 0; rank < 2; rank++) {
            int own = rank;
            String message =
                    assertThrows(MillraceException.class, () -> ControlPlane.join(rendezvous, own, 2, Ranks.TIMEOUT))
                            .getMessage();
            assertTrue(message.startsWith(path + " is not a rendezvous file of this release: "), message);
        }
        assertEquals(content, Files.readString(path));
    }

    @Test
    void theFileIsDeletedWhenTheGroupFails() throws Exception {
        assertThrows(MillraceException.class, () -> ControlPlane.join(rendezvous, 0, 2, LITTLE));
        assertNoFileIsLeft();
    }

    @Test
    void theFileOfAnotherGroupIsNotDeleted() throws Exception {
        FileRendezvous.RendezvousFile mine = fileOf(1);
        FileRendezvous.RendezvousFile theirs = fileOf(1);
        assertNotEquals(mine, theirs);
        theirs.publish(path);
        mine.withdraw(path);
        assertEquals(theirs, FileRendezvous.RendezvousFile.read(path).orElseThrow());
    }

    @Test
    void aFolderThatIsMissingIsNamed() {
        String missing = folder.resolve("missing").resolve("group").toString();
        String message =
                assertThrows(MillraceException.class, () -> ControlPlane.join("file:" + missing, 0, 2, Ranks.TIMEOUT))
                        .getMessage();
        assertTrue(message.contains("rank 0 cannot write " + missing) && message.contains("the directory has to exist"),
                message);
    }

    /**
     * A user who knows a job's number must not be able to create the files of the job's rendezvous before the job
     * creates them.
     */
    @Tag("root")
    @Test
    void ranksOfAJobMeetWhereNobodyElseCanWrite(@TempDir Path shared) throws IOException {
        JoinOptions options = JoinOptions.within(Ranks.TIMEOUT);
        Path own = FileRendezvous.ofJob("job:7-0", shared, options).path().getParent();
        assertEquals(shared, own.getParent());
        assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(own)));
        Files.setPosixFilePermissions(own, PosixFilePermissions.fromString("rwxrwxrwx"));
        FileRendezvous.ofJob("job:7-0", shared, options);
        assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(own)));
        Files.delete(own);
        Path elsewhere = Files.createDirectory(shared.resolve("elsewhere"));
        Files.createSymbolicLink(own, elsewhere);
        String said = assertThrows(MillraceException.class, () -> FileRendezvous.ofJob("job:7-0", shared, options))
                .getMessage();
        assertTrue(said.contains("another user created it before") && said.contains("MASTER_ADDR"), said);
        assumeTrue(User.ID == 0, "only root can make directories for others");
        Files.delete(own);
        Files.setAttribute(elsewhere, "unix:uid", 4711);
        Files.move(elsewhere, own);
        assertThrows(MillraceException.class, () -> FileRendezvous.ofJob("job:7-0", shared, options));
    }
}
