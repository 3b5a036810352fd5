package org.millrace.fuzz;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A fuzz test that finds nothing proves little. This test removes one check at a time from the library. The fuzz test
 * that covers the changed code must then fail, and report an input.
 */
@Timeout(300)
@Tag("slow")
class PlantedBugsTest {

    private static final String NOTHING = "";

    @TempDir
    Path folder;

    private void assertFound(String source, String right, String wrong, String test, String surface) throws Exception {
        PlantedBug bug = new PlantedBug(folder, source, right, wrong);
        Throwable found = bug.foundBy(Class.forName("org.millrace." + test), surface);
        AssertionError error = assertInstanceOf(AssertionError.class, found, () -> "not found: " + found);
        assertTrue(error.getMessage().contains("-Dmillrace.fuzz.seed="), error.toString());
    }

    static List<Arguments> bugsOfConsumers() {
        String side = "net/shm/RingSide.java";
        String frames = "net/shm/FrameLayout.java";
        return List.of(arguments("a position beyond the ring", side, "more < 0 || more > capacity", "more < 0"),
                arguments("a position behind the reader", side, "more < 0 || more > capacity", "more > capacity"),
                arguments("a position within a line", side, "|| (more & RingLayout.ALIGNMENT - 1) != 0", NOTHING),
                arguments("a payload of less than nothing", frames, "bytes < 0 || bytes > MAX", "bytes > MAX"),
                arguments("a payload longer than any", frames, "bytes < 0 || bytes > MAX_PAYLOAD_BYTES", "bytes < 0"),
                arguments("a frame that is not the next", frames, "ring.getLong(at) != tag(sequence) ||", NOTHING),
                arguments("a payload longer than its place", "net/connection/NativeRegion.java",
                        "|| bytes > ours.view.byteSize() - offset", NOTHING));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("bugsOfConsumers")
    void ofARingsConsumer(String bug, String source, String right, String wrong) throws Exception {
        assertFound(source, right, wrong, "net.shm.RingFuzzTest", "sharedRings");
    }

    static List<Arguments> bugsOfProducers() {
        return List.of(arguments("more is read than was written", "unread < 0 || consumed", "consumed"),
                arguments("room is taken back", "|| consumed - otherSeen < 0", NOTHING),
                arguments("a position within a line", "|| (consumed & RingLayout.ALIGNMENT - 1) != 0", NOTHING));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("bugsOfProducers")
    void ofARingsProducer(String bug, String right, String wrong) throws Exception {
        assertFound("net/shm/RingSide.java", right, wrong, "net.shm.RingFuzzTest", "consumersOfRings");
    }

    static List<Arguments> bugsOfTcp() {
        String header = "net/socket/HeaderFormat.java";
        String window = "net/socket/ReceiveWindow.java";
        return List.of(arguments("frames", "a payload of less than nothing", header, "type && length >= 0", "type"),
                arguments("frames", "a payload longer than any", header, "&& length <= MAX_PAYLOAD_BYTES", NOTHING),
                arguments("frames", "a payload longer than its place", "net/connection/NativeRegion.java",
                        "|| bytes > ours.view.byteSize() - offset", NOTHING),
                arguments("pieces", "a frame that is not under way yet", window,
                        "|| frame - completed >= pieces.window()", NOTHING),
                arguments("pieces", "a piece that begins where none does", window, "|| offset % pieces.bytes() != 0",
                        NOTHING),
                arguments("pieces", "a piece of another length", window,
                        "|| length != pieces.length(payload, offset / pieces.bytes())", NOTHING),
                arguments("strangersAtADataPort", "a secret that nobody looks at", "net/connection/IncomingHello.java",
                        "!MessageDigest.isEqual(HelloFormat.secretIn(received), secret)", "false"));
    }

    @ParameterizedTest(name = "{0}: {1}")
    @MethodSource("bugsOfTcp")
    void ofTcp(String surface, String bug, String source, String right, String wrong) throws Exception {
        assertFound(source, right, wrong, "net.socket.SocketFuzzTest", surface);
    }

    static List<Arguments> bugsOfTheControlPlane() {
        String codec = "MessageCodec.java";
        return List.of(
                arguments("letters", "a length of less than nothing", codec, "length < 0 || length > limit",
                        "length > limit"),
                arguments("letters", "a length beyond the limit", codec, "length < 0 || length > limit", "length < 0"),
                arguments("letters", "memory for a length that is only said", codec,
                        "length < 0 || length > in.remaining()", "length < 0"),
                arguments("letters", "a call that there is not", codec, "ordinal < 0 || ordinal >= known.length",
                        "false"),
                arguments("letters", "a rank that there is not", "GroupState.java", "rank < 0 || rank >= size()",
                        "rank < 0"),
                arguments("lettersOfMembers", "a text of less than nothing", "RankLetter.java", "wanted < 0 ||",
                        NOTHING),
                arguments("lettersOfMembers", "a text beyond the end", "RankLetter.java",
                        "|| wanted > bytes.remaining()", NOTHING),
                arguments("rendezvousFiles", "no port", "FileRendezvous.java", "number < 1 ||", NOTHING),
                arguments("strangersAtThePort", "a proof that nobody looks at", "Acceptor.java", "!Secret.same(",
                        "false && !Secret.same("));
    }

    @ParameterizedTest(name = "{0}: {1}")
    @MethodSource("bugsOfTheControlPlane")
    void ofTheControlPlane(String surface, String bug, String file, String right, String wrong) throws Exception {
        assertFound("bootstrap/" + file, right, wrong, "bootstrap.ControlFuzzTest", surface);
    }

    static List<Arguments> bugsOfGin() {
        String window = "gin/Window.java";
        String dispatcher = "gin/FrameDispatcher.java";
        return List.of(arguments("a place before the window", window, "offset >= 0 && bytes >= 0 &&", "bytes >= 0 &&"),
                arguments("a place behind the window", window, "&& offset <= memory.bytes() - bytes", NOTHING),
                arguments("a signal that there is not", dispatcher, "|| signal >= context.signals().count()", NOTHING),
                arguments("a context that there is not", dispatcher,
                        "number < contexts.length ? contexts[(int) number] : null", "contexts[(int) number]"),
                arguments("more than was asked for", dispatcher, "|| bytes > get.missing", NOTHING));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("bugsOfGin")
    void ofGin(String bug, String source, String right, String wrong) throws Exception {
        assertFound(source, right, wrong, "gin.GinFuzzTest", "ginHeaders");
    }
}
