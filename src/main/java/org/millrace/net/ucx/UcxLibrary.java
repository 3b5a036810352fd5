package org.millrace.net.ucx;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.ucx.ucp_h;
import org.millrace.foreign.CFunction;
import org.millrace.library.BundledLibrary;
import org.millrace.library.DynamicLoader;
import org.millrace.net.ucx.UcxNetwork.UcxUnavailableException;

/** The library libucp of UCX. It is loaded once in a process. */
final class UcxLibrary {

    static final String NAME = "libucp.so.0";

    /** Oldest supported release. From this release on, UCX's functions accept a memory handle for a message. */
    static final int LEAST_MAJOR = 1;
    static final int LEAST_MINOR = 13;

    /**
     * Settings that prevent side effects of UCX. UCX reads them when it is loaded. The user's environment has
     * precedence. Without these settings UCX would install handlers for the signals of memory errors. A JVM needs these
     * signals to detect null pointers and to stop its threads. UCX would also write its warnings to the program's
     * output.
     */
    private static final Map<String, String> WHEN_LOADED =
            Map.of("UCX_HANDLE_ERRORS", "none", "UCX_WARN_UNUSED_ENV_VARS", "n", "UCX_LOG_FILE", "stderr");
    /**
     * Settings that UCX reads when it creates a worker. They make UCX send a slot over TCP as one segment. With the
     * value 512k, an all-reduce of 2 MiB or more takes two thirds of the time that it takes with 128k. The values 1m
     * and 2m bring no further gain. The corresponding setting of one UCX context is not used, because its name differs
     * between releases.
     */
    private static final Map<String, String> ALWAYS =
            Map.of("UCX_TCP_TX_SEG_SIZE", "512k", "UCX_TCP_RX_SEG_SIZE", "512k");

    private static final String OTHERWISE = "; or choose another network with MILLRACE_NET";

    /** Value of {@code UCS_ERR_NO_DEVICE}. */
    private static final int NO_DEVICE = -14;

    private static @Nullable UcxLibrary loaded;
    private static @Nullable UcxUnavailableException refused;

    private final String version;
    private final String file;

    private UcxLibrary(String version, String file) {
        this.version = version;
        this.file = file;
    }

    /**
     * Loads libucp from a path. Without a path, the loader searches for it. If the first attempt of the process has
     * failed, each call throws the same exception again.
     */
    public static synchronized UcxLibrary load(Optional<Path> path) {
        UcxUnavailableException before = refused;
        if (before != null) {
            throw before;
        }
        UcxLibrary library = loaded;
        if (library == null) {
            try {
                library = open(path.map(Path::toString).orElse(NAME));
            } catch (UcxUnavailableException e) {
                refused = e;
                throw e;
            }
            loaded = library;
        }
        return library;
    }

    static UcxLibrary open(String name) {
        try (Arena arena = Arena.ofConfined()) {
            ALWAYS.forEach((variable, value) -> set(arena, variable, value));
            WHEN_LOADED.forEach((variable, value) -> set(arena, variable, value));
            // This call precedes the load of UCX, because the call has no effect on file descriptors that are already
            // open.
            BundledLibrary.keepDescriptors();
            String problem = DynamicLoader.open(name).error();
            // UCX has read these settings. The settings are removed, so that child processes do not inherit them.
            WHEN_LOADED.keySet()
                    .stream()
                    .filter(variable -> System.getenv(variable) == null)
                    .forEach(
                            variable -> CFunction.named("unsetenv").call(arena.allocateFrom(variable).address(), 0, 0));
            if (problem != null) {
                throw new UcxUnavailableException("UCX cannot be loaded (" + problem + ")",
                        "install it (Debian and Ubuntu: libucx0, Fedora and RHEL: ucx), put its folder into "
                                + "LD_LIBRARY_PATH, or name libucp.so.0 with MILLRACE_UCX_LIBRARY" + OTHERWISE,
                        problem.contains("cannot open shared object file"));
            }
            MemorySegment numbers = arena.allocate(ValueLayout.JAVA_INT, 3);
            ucp_h.ucp_get_version(numbers.address(), numbers.address() + 4, numbers.address() + 8);
            String file = fileOf(name);
            checkVersion(numbers.get(ValueLayout.JAVA_INT, 0), numbers.get(ValueLayout.JAVA_INT, 4), file);
            return new UcxLibrary(text(ucp_h.ucp_get_version_string().address()), file);
        } catch (UnsatisfiedLinkError | ExceptionInInitializerError | IllegalArgumentException e) {
            throw new UcxUnavailableException(name + " is not UCX's libucp, or a damaged one (" + e.getMessage() + ")",
                    "correct MILLRACE_UCX_LIBRARY or LD_LIBRARY_PATH" + OTHERWISE);
        }
    }

    /** Sets an environment variable for native code, unless the user's environment contains it. */
    private static void set(Arena arena, String variable, String value) {
        if (System.getenv(variable) == null) {
            CFunction.named("setenv")
                    .call(arena.allocateFrom(variable).address(), arena.allocateFrom(value).address(), 1);
        }
    }

    /** Throws if the release of the library is not supported. */
    static void checkVersion(int major, int minor, String file) {
        if (major != LEAST_MAJOR || minor < LEAST_MINOR) {
            throw new UcxUnavailableException(
                    file + " is UCX " + major + "." + minor + ", and " + LEAST_MAJOR + "." + LEAST_MINOR
                            + " or a newer " + LEAST_MAJOR + ".x is needed",
                    "update it, or name another libucp.so.0 with MILLRACE_UCX_LIBRARY" + OTHERWISE);
        }
    }

    private static String fileOf(String name) {
        try (var maps = Files.lines(Path.of("/proc/self/maps"))) {
            return maps.filter(line -> line.contains("libucp.so"))
                    .map(line -> line.substring(line.indexOf('/')))
                    .findFirst()
                    .orElse(name);
        } catch (IOException e) {
            return name;
        }
    }

    /** {@return the release, for instance {@code 1.13.1}} */
    public String version() {
        return version;
    }

    public String file() {
        return file;
    }

    @SuppressWarnings("restricted") // the segment is a C string, which the library never frees
    static String text(long address) {
        return address == 0 ? "no reason was given"
                : MemorySegment.ofAddress(address).reinterpret(Long.MAX_VALUE).getString(0);
    }

    /**
     * Returns whether the result of a UCX function is a status and not a request. A status is null (the operation is
     * complete) or an error.
     */
    public static boolean isStatus(long returned) {
        return returned == 0 || Long.compareUnsigned(returned, ucp_h.UCS_ERR_LAST()) >= 0;
    }

    public static String meaning(int status) {
        return text(ucp_h.ucs_status_string(status).address());
    }

    /**
     * Returns the handle that a UCX function has created. Throws if the function has created no handle. If no transport
     * is usable, UCX 1.13 creates no handle and reports no error. For instance, UCX_TLS names a transport that does not
     * exist, or {@code /dev/shm} is not writable.
     *
     * @param what action for the message, such as "make a worker"
     */
    public static long made(int status, long handle, String what) {
        check(handle == 0 && status >= 0 ? NO_DEVICE : status, what);
        return handle;
    }

    /**
     * Throws if a UCX function has failed during the setup.
     *
     * @param what action for the message, such as "make a worker"
     */
    public static void check(int status, String what) {
        if (status < 0) {
            throw new UcxUnavailableException("UCX cannot " + what + " (" + meaning(status) + ", " + status + ")",
                    "doctor lists what UCX found, and with UCX_LOG_LEVEL=info UCX logs more");
        }
    }
}
