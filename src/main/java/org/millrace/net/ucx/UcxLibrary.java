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

/** Loads libucp, once in a process. */
final class UcxLibrary {

    /** The name by which the loader knows it. */
    static final String NAME = "libucp.so.0";

    /** The oldest release whose functions take memory handles with a message. */
    static final int LEAST_MAJOR = 1;
    static final int LEAST_MINOR = 13;

    /**
     * What UCX would do to a process when it is loaded, unless its environment says otherwise: it takes the signals of
     * memory errors over, by which a JVM looks for null pointers and stops its threads, and writes its warnings among
     * what the program prints.
     */
    private static final Map<String, String> WHEN_LOADED =
            Map.of("UCX_HANDLE_ERRORS", "none", "UCX_WARN_UNUSED_ENV_VARS", "n", "UCX_LOG_FILE", "stderr");
    /**
     * What it reads whenever it makes a worker: TCP carries a slot as a whole. An all-reduce of 2 MiB and more takes
     * two thirds of what it takes with 128k; 1m and 2m bring no more. (To set it for a context alone has another name
     * in each release.)
     */
    private static final Map<String, String> ALWAYS =
            Map.of("UCX_TCP_TX_SEG_SIZE", "512k", "UCX_TCP_RX_SEG_SIZE", "512k");

    private static final String OTHERWISE = "; or choose another network with MILLRACE_NET";

    /** {@code UCS_ERR_NO_DEVICE}. */
    private static final int NO_DEVICE = -14;

    private static @Nullable UcxLibrary loaded;
    private static @Nullable UcxUnavailableException refused;

    private final String version;
    private final String file;

    private UcxLibrary(String version, String file) {
        this.version = version;
        this.file = file;
    }

    /** Loads it, by the loader unless a path is given, or says again why that failed the first time. */
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
            BundledLibrary.keepDescriptors(); // before UCX opens any
            String problem = DynamicLoader.open(name).error();
            // It was read; what this process starts need not inherit it.
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

    /** Sets a variable that the user has not set, for C. */
    private static void set(Arena arena, String variable, String value) {
        if (System.getenv(variable) == null) {
            CFunction.named("setenv")
                    .call(arena.allocateFrom(variable).address(), arena.allocateFrom(value).address(), 1);
        }
    }

    /** Refuses a library that is too old. */
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

    /** {@return the file that it was loaded from} */
    public String file() {
        return file;
    }

    /** A text of C's. */
    @SuppressWarnings("restricted") // a string that the library keeps
    static String text(long address) {
        return address == 0 ? "no reason was given"
                : MemorySegment.ofAddress(address).reinterpret(Long.MAX_VALUE).getString(0);
    }

    // What its functions return

    /** Whether what was returned in place of a request is a status: null for done, or an error. */
    public static boolean isStatus(long returned) {
        return returned == 0 || Long.compareUnsigned(returned, ucp_h.UCS_ERR_LAST()) >= 0;
    }

    /** What a status means, for messages. */
    public static String meaning(int status) {
        return text(ucp_h.ucs_status_string(status).address());
    }

    /**
     * What a call has made. Where no transport is left, as one that UCX_TLS names is missing, or {@code /dev/shm}
     * cannot be written, UCX 1.13 makes nothing, and calls that no error.
     */
    public static long made(int status, long handle, String what) {
        check(handle == 0 && status >= 0 ? NO_DEVICE : status, what);
        return handle;
    }

    /** Throws if a call of setting up has failed. */
    public static void check(int status, String what) {
        if (status < 0) {
            throw new UcxUnavailableException("UCX cannot " + what + " (" + meaning(status) + ", " + status + ")",
                    "doctor lists what it found, and with UCX_LOG_LEVEL=info it says more");
        }
    }
}
