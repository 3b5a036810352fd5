package org.millrace.net.ucx;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.millrace.ffi.ucx.ucp_h;
import org.millrace.ffi.ucx.ucp_mem_map_params;
import org.millrace.ffi.ucx.ucp_params;
import org.millrace.foreign.CFunction;

/**
 * A UCX context: the transports that UCX has found on this machine, and the registered memory. The process uses one
 * context until the process ends, because a card that is opened once can serve all connections. UCX reads the user's
 * {@code UCX_*} variables when it creates the context. Callable from any thread.
 */
final class UcxContext {

    /** Transports through memory that processes of one host share. */
    private static final Pattern SHARED_MEMORY = Pattern.compile("(posix|sysv|xpmem|knem)/.*");
    /**
     * Maximum length in bytes of an eager message from host memory; equal to the length of a slot. If the sender
     * requests an eager message, UCX sends the message without a rendezvous: UCX does not ask the receiver first. A
     * longer message needs a rendezvous, even if the sender has requested an eager message.
     */
    static final int EAGER_BYTES = 512 << 10;
    /**
     * UCX setting: minimum length of a message that is sent with a rendezvous although the sender has requested an
     * eager message. UCX's default is half a slot.
     */
    private static final String ANNOUNCED_FROM = "RNDV_SEND_NBR_THRESH";

    /** Transports of cards that write directly to the memory of a peer on another host. */
    private static final Pattern REMOTE_MEMORY = Pattern.compile("(rc|ud|dc|gga|srd|gdr|ugni|rocm_ipc).*/.*");
    /**
     * Pattern of a line that names a transport, in the text that UCX prints about a context: {@code # resource 1 : md 1
     * dev 1 flags -- tcp/eth0}.
     */
    private static final Pattern RESOURCE = Pattern.compile("#\\s+resource\\s+\\d+.*\\s(\\S+/\\S+)\\s*");

    private static final Map<Map<String, String>, UcxContext> OPEN = new HashMap<>();

    private final UcxLibrary library;
    private final long handle;
    private final List<String> transports;

    private UcxContext(UcxLibrary library, long handle) {
        this.library = library;
        this.handle = handle;
        this.transports = describe(handle);
    }

    /**
     * Returns the process's context. Throws {@link UcxNetwork.UcxUnavailableException} if UCX cannot be used on this
     * machine.
     */
    static UcxContext get(Optional<Path> path) {
        return get(path, Map.of());
    }

    /**
     * Returns a context with additional settings. This context also exists until the end of the process.
     *
     * @param settings UCX settings by name, without the prefix {@code UCX_}
     */
    static synchronized UcxContext get(Optional<Path> path, Map<String, String> settings) {
        UcxContext context = OPEN.get(settings);
        if (context == null) {
            UcxLibrary library = UcxLibrary.load(path);
            context = new UcxContext(library, open(settings));
            OPEN.put(Map.copyOf(settings), context);
        }
        return context;
    }

    private static long open(Map<String, String> settings) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment result = arena.allocate(ValueLayout.JAVA_LONG);
            UcxLibrary.check(ucp_h.ucp_config_read(0, 0, result.address()), "read its configuration");
            long config = result.get(ValueLayout.JAVA_LONG, 0);
            if (System.getenv("UCX_" + ANNOUNCED_FROM) == null) {
                // The result is ignored. A UCX release without this setting uses a rendezvous for long messages, which
                // is slower but correct.
                int ignored = ucp_h.ucp_config_modify(config, arena.allocateFrom(ANNOUNCED_FROM).address(),
                        arena.allocateFrom(Integer.toString(EAGER_BYTES + 1)).address());
            }
            settings.forEach((name, value) -> UcxLibrary.check(ucp_h.ucp_config_modify(config,
                    arena.allocateFrom(name).address(), arena.allocateFrom(value).address()), "set " + name));
            MemorySegment params = ucp_params.allocate(arena);
            ucp_params.field_mask(params, ucp_h.UCP_PARAM_FIELD_FEATURES() | ucp_h.UCP_PARAM_FIELD_MT_WORKERS_SHARED());
            ucp_params.features(params, ucp_h.UCP_FEATURE_TAG());
            ucp_params.mt_workers_shared(params, 1);
            result.set(ValueLayout.JAVA_LONG, 0, 0);
            int status = ucp_h.ucp_init_version(UcxLibrary.LEAST_MAJOR, UcxLibrary.LEAST_MINOR, params.address(),
                    config, result.address());
            ucp_h.ucp_config_release(config);
            return UcxLibrary.made(status, result.get(ValueLayout.JAVA_LONG, 0), "be initialized");
        }
    }

    /**
     * Returns the names of a context's transports. UCX lists them only in the text that it prints about the context.
     */
    @SuppressWarnings("restricted") // the new segment has the length that the C library reports
    private static List<String> describe(long handle) {
        try (Arena arena = Arena.ofConfined()) {
            // Memory into which the C library stores the address and the length of the text.
            MemorySegment text = arena.allocate(ValueLayout.JAVA_LONG, 2);
            long stream = CFunction.named("open_memstream")
                    .call(text.address(), text.address() + ValueLayout.JAVA_LONG.byteSize());
            if (stream == 0) {
                return List.of();
            }
            ucp_h.ucp_context_print_info(handle, stream);
            CFunction.named("fclose").call(stream);
            MemorySegment printed = MemorySegment.ofAddress(text.getAtIndex(ValueLayout.JAVA_LONG, 0))
                    .reinterpret(text.getAtIndex(ValueLayout.JAVA_LONG, 1) + 1);
            List<String> resources = printed.getString(0)
                    .lines()
                    .map(RESOURCE::matcher)
                    .filter(Matcher::matches)
                    .map(resource -> resource.group(1))
                    .toList();
            CFunction.named("free").call(printed.address());
            return resources;
        }
    }

    /** {@return UCX's version, and the file that UCX was loaded from} */
    String library() {
        return library.version() + ", " + library.file();
    }

    long handle() {
        return handle;
    }

    /** {@return the names of the transports that UCX may use, for instance {@code tcp/eth0}} */
    List<String> transports() {
        return transports;
    }

    /** Returns whether processes of one host can exchange bytes through shared memory. */
    boolean sharesMemory() {
        return transports.stream().anyMatch(each -> SHARED_MEMORY.matcher(each).matches());
    }

    /** Returns whether this machine has a card that writes directly to the memory of other hosts. */
    boolean reachesRemoteMemory() {
        return transports.stream().anyMatch(each -> REMOTE_MEMORY.matcher(each).matches());
    }

    /** Registers memory with all transports that require a registration. Returns the handle of the registration. */
    long map(MemorySegment memory) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment params = ucp_mem_map_params.allocate(arena);
            ucp_mem_map_params.field_mask(params,
                    ucp_h.UCP_MEM_MAP_PARAM_FIELD_ADDRESS() | ucp_h.UCP_MEM_MAP_PARAM_FIELD_LENGTH());
            ucp_mem_map_params.address(params, memory.address());
            ucp_mem_map_params.length(params, memory.byteSize());
            MemorySegment result = arena.allocate(ValueLayout.JAVA_LONG);
            UcxLibrary.check(ucp_h.ucp_mem_map(handle, params.address(), result.address()), "register "
                    + memory.byteSize() + " bytes of memory (is the limit of locked memory, ulimit -l, too " + "low?)");
            return result.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    /**
     * Undoes a registration.
     *
     * @param memory result of {@link #map}
     */
    void unmap(long memory) {
        int ignored = ucp_h.ucp_mem_unmap(handle, memory);
    }
}
