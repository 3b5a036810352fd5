package org.millrace.net.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.millrace.cuda.NativeBuild;
import org.millrace.net.socket.SocketOptions;

/**
 * The network plugin of the tests, {@code test_net.c}. It is built once for each version of NCCL's table, and
 * misbehaves as configured. Its options and counts apply to the whole process.
 */
public final class TestNet {

    private static final Path SOURCE = Path.of("src/test/c/netplugin/test_net.c");
    private static final Map<String, TestNet> BUILT = new ConcurrentHashMap<>();

    /** Counters of the plugin. Their order equals the order of the counters in the plugin's code. */
    public enum Count {
        /** Memory that is registered and not released. */
        REGISTERED,
        /** Open listeners, communicators and contexts. */
        OPEN,
        /** Configured faults that have occurred. */
        FAULTS,
        /** Calls that post a receive of several buffers. */
        GROUPS,
        FLUSHES,
        /** Calls that broke the plugin's rules. */
        COMPLAINTS,
        MESSAGES,
        /** Memory that was registered by its DMA-BUF. */
        DMA_BUFS
    }

    private final Path library;
    private final MethodHandle options;
    private final MethodHandle complain;
    private final MemorySegment counts;

    @SuppressWarnings("restricted") // the library is part of the tests
    private TestNet(Path library) {
        this.library = library;
        SymbolLookup symbols = SymbolLookup.libraryLookup(library, Arena.global());
        Linker linker = Linker.nativeLinker();
        options = linker.downcallHandle(symbols.find("testNetOptions").orElseThrow(),
                FunctionDescriptor.ofVoid(ValueLayout.ADDRESS));
        complain = linker.downcallHandle(symbols.find("testNetWarn").orElseThrow(),
                FunctionDescriptor.ofVoid(ValueLayout.ADDRESS));
        try {
            counts = ((MemorySegment) linker
                    .downcallHandle(symbols.find("testNetCounts").orElseThrow(),
                            FunctionDescriptor.of(ValueLayout.ADDRESS))
                    .invokeExact()).reinterpret(Count.values().length * Long.BYTES);
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /** Builds the library, with optional flags for the compiler. */
    public static Path build(String... flags) {
        List<String> all = new ArrayList<>(List.of("-O2", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden"));
        all.addAll(List.of(flags));
        return NativeBuild.library(NativeBuild.directory().resolve("libnccl-net-test.so"), SOURCE,
                all.toArray(String[]::new));
    }

    /** Returns a plugin that no other test of the process opens. */
    public static TestNet alone(int version, Class<?> user) {
        return BUILT.computeIfAbsent(user.getSimpleName(),
                key -> new TestNet(build("-DNET_VERSION=" + version, "-DFOR_" + key)));
    }

    /** Returns the plugin with the table of a version. */
    public static TestNet version(int version) {
        return BUILT.computeIfAbsent("v" + version, key -> new TestNet(build("-DNET_VERSION=" + version)));
    }

    /** Returns a second plugin with another name. */
    static TestNet other() {
        return BUILT.computeIfAbsent("other", key -> new TestNet(build())).with("name=OtherNet");
    }

    /**
     * Returns the value of MILLRACE_NET for a network. The name {@code plugin} selects this plugin in its latest
     * version. Any other name is the value itself. In a separate process, the variable MILLRACE_TEST_NET sets the
     * plugin's faults.
     */
    public static String setting(String network) {
        return network.equals("plugin") ? "plugin:" + version(12).library() : network;
    }

    public Path library() {
        return library;
    }

    /** Sets the faults from now on. Resets the counts, except for open resources. */
    public TestNet with(String words) {
        try (Arena arena = Arena.ofConfined()) {
            options.invokeExact(arena.allocateFrom(words));
            return this;
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /** Makes the plugin log a warning. A thread of the plugin may log a warning at any time. */
    void complain(String words) {
        try (Arena arena = Arena.ofConfined()) {
            complain.invokeExact(arena.allocateFrom(words));
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    public long count(Count what) {
        return (long) ValueLayout.JAVA_LONG.varHandle().getVolatile(counts, what.ordinal() * (long) Long.BYTES);
    }

    public PluginNetwork open() {
        return open(PluginOptions.defaults());
    }

    /** Opens a network that connects to its peers over loopback. */
    public PluginNetwork open(PluginOptions options) {
        return PluginNetwork.open(library,
                SocketOptions.defaults().withAddresses("", null, InetAddress.getLoopbackAddress()), options);
    }
}
