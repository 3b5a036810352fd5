package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.file.FileName;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Pending;
import org.millrace.net.TestOptions;
import org.millrace.net.shm.ShmNetwork.ShmAddress;

/** Files in the shared directory, the directory's owner, and behavior when the directory is full. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class SharedDirectoryTest {

    private static final int LARGE = 4 << 20;

    @TempDir
    private Path directory;
    private ShmOptions options;

    @BeforeEach
    void options() {
        options = TestOptions.files(directory);
    }

    private static List<Path> files(Path directory) throws IOException {
        try (Stream<Path> all = Files.list(directory)) {
            return all.toList();
        }
    }

    @Test
    void onlyTheListenersSocketIsThereOnceAConnectionIsMade() throws IOException {
        try (ShmNetwork network = new ShmNetwork(options); Connected ends = Connected.make(network, network)) {
            List<Path> files = files(directory);
            assertEquals(1, files.size(), files::toString);
            assertTrue(files.getFirst().toString().endsWith(".sock"), files::toString);
            assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(files.getFirst())));
            ends.listener().close();
            assertEquals(List.of(), files(directory));
        }
    }

    @Test
    void aRingIsTheUsersOwnFromTheStartAndGoneWhenTheConnectionIsGivenUp() throws IOException {
        try (ShmNetwork network = new ShmNetwork(options); Listener listener = network.listen()) {
            Pending<FrameSender> connecting = network.connect(listener.address(), Connected.newKey());
            assertNull(connecting.poll());
            Path ring = files(directory).stream()
                    .filter(file -> file.toString().endsWith(".ring"))
                    .findFirst()
                    .orElseThrow();
            assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(ring)));
            connecting.close();
            assertEquals(1, files(directory).size());
        }
        assertEquals(List.of(), files(directory));
    }

    @Test
    void theReceiverDeletesTheRingBeforeTheSenderKnowsThatItIsAccepted() throws IOException {
        try (ShmNetwork network = new ShmNetwork(options); Listener listener = network.listen()) {
            ConnectionKey key = Connected.newKey();
            Pending<FrameReceiver> accepting = listener.expect(key);
            Pending<FrameSender> connecting = network.connect(listener.address(), key);
            assertNull(connecting.poll());
            assertEquals(2, files(directory).size());
            while (accepting.poll() == null) {
                Thread.onSpinWait();
            }
            assertEquals(1, files(directory).size());
            connecting.close();
        }
    }

    @Test
    void closingTheNetworkLeavesNothing() throws IOException {
        ShmNetwork network = new ShmNetwork(options);
        Connected.make(network, network);
        assertNull(network.connect(network.listen().address(), Connected.newKey()).poll());
        assertEquals(3, files(directory).size());
        network.close();
        assertEquals(List.of(), files(directory));
    }

    @Test
    void filesOfDeadProcessesAreDeletedAndOthersAreNot() throws Exception {
        Process dead = new ProcessBuilder("true").start();
        dead.waitFor();
        ProcessIdentity me = ProcessIdentity.CURRENT;
        Assumptions.assumeTrue(me.namespace() != 0, "SKIPPED: there is no /proc, and nobody is known by a number");
        Path ofDead = Files.createFile(directory.resolve(
                new FileName(1, new ProcessIdentity(dead.pid(), 5, me.namespace()), FileName.RING).toString()));
        Path ofFormerHolderOfMyNumber = Files.createFile(directory.resolve(
                new FileName(2, new ProcessIdentity(me.pid(), me.startTicks() - 1, me.namespace()), FileName.SOCKET)
                        .toString()));
        Path mine = Files.createFile(directory.resolve(FileName.ours(3, FileName.RING).toString()));
        Path ofOtherContainer = Files.createFile(directory.resolve(
                new FileName(4, new ProcessIdentity(dead.pid(), 5, me.namespace() + 1), FileName.RING).toString()));
        Path stranger = Files.createFile(directory.resolve("millrace-notes.ring"));
        try (ShmNetwork network = new ShmNetwork(options); Listener listener = network.listen()) {
            assertTrue(listener.toString().contains(directory.toString()));
            assertTrue(Files.notExists(ofDead));
            assertTrue(Files.notExists(ofFormerHolderOfMyNumber));
            assertTrue(Files.exists(mine));
            assertTrue(Files.exists(ofOtherContainer));
            assertTrue(Files.exists(stranger));
        }
    }

    private void mountMemory(String size) throws Exception {
        Process mount = new ProcessBuilder("mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", directory.toString())
                .redirectErrorStream(true)
                .start();
        String output = new String(mount.getInputStream().readAllBytes());
        Assumptions.assumeTrue(mount.waitFor() == 0,
                "SKIPPED: a full directory needs a small tmpfs, which only root may mount: " + output);
    }

    /** The sender copies unread payloads into the memory behind the ring until this memory is full. */
    @Tag("root")
    @Test
    void aPayloadWithoutRoomBehindTheRingStaysInPlace() throws Exception {
        Assumptions.assumeTrue(SingleCopy.isPossible(), SingleCopy::describe);
        mountMemory("512k");
        ShmOptions inPlace = TestOptions.ring(options, 16 << 10, 1 << 10)
                .withSingleCopy(new SingleCopy(SingleCopy.Use.REQUIRED, 1 << 10));
        try (Arena arena = Arena.ofShared();
                ShmNetwork network = new ShmNetwork(inPlace);
                Connected ends = Connected.make(network, network)) {
            MemorySegment sent = arena.allocate(LARGE);
            MemorySegment received = arena.allocate(LARGE);
            sent.fill((byte) 5);
            FrameHeader header = new FrameHeader();
            header.payloadBytes(LARGE);
            assertTrue(ends.sender().offer(header, network.register(sent), 0));
            ends.sender().progress();
            ends.sender().settle();
            assertEquals(0, ends.sender().framesCompleted());
            ends.nextHeader();
            ends.receiver().accept(network.register(received), 0);
            while (ends.receiver().framesCompleted() == 0) {
                ends.receiver().progress();
            }
            assertEquals(-1, sent.mismatch(received));
        } finally {
            assertEquals(0, new ProcessBuilder("umount", directory.toString()).start().waitFor());
        }
    }

    @Tag("root")
    @Test
    void aFullDirectoryIsAnErrorWithSizesAndNothingIsLeft() throws Exception {
        mountMemory("512k");
        try (ShmNetwork network = new ShmNetwork(options); Listener listener = network.listen()) {
            Pending<FrameSender> connecting = network.connect(listener.address(), Connected.newKey());
            ConnectionException full =
                    assertInstanceOf(ShmUnavailableException.class, Connected.failureOf(connecting::poll));
            assertTrue(full.getMessage().contains("2101248 bytes") && full.getMessage().contains("of 524288"),
                    full.getMessage());
            assertEquals(1, files(directory).size(), "the listener's socket");
        } finally {
            assertEquals(0, new ProcessBuilder("umount", directory.toString()).start().waitFor());
        }
    }

    @Test
    void aDirectoryThatIsNotThereIsAnError() {
        try (ShmNetwork network = new ShmNetwork(TestOptions.files(directory.resolve("none")))) {
            ConnectionException none = assertThrows(ShmUnavailableException.class, network::listen);
            assertTrue(none.getMessage().contains("none"), none.getMessage());
        }
    }

    @Test
    void aListenerThatIsNotToBeSeenIsAnErrorAtOnce() {
        try (ShmNetwork network = new ShmNetwork(options);
                ShmNetwork elsewhere = new ShmNetwork(ShmOptions.defaults());
                Listener listener = network.listen()) {
            assertThrows(ShmUnavailableException.class,
                    () -> elsewhere.connect(listener.address(), Connected.newKey()));
            ShmAddress here = ShmAddress.decode(listener.address());
            byte[] otherHost = new ShmAddress(here.id(), here.host() + 1, here.secret()).encode();
            assertTrue(assertThrows(ShmUnavailableException.class, () -> network.connect(otherHost, Connected.newKey()))
                    .getMessage()
                    .contains("another host"));
        }
    }
}
