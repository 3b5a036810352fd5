package org.millrace.library;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.config.Configuration;
import org.millrace.config.Setting;

/**
 * A native library, loaded once for good and bound to the generated classes.
 *
 * <p>
 * Those classes hold one {@code static final} method handle per function, the only kind of handle that the compiler
 * inlines (6 ns a call; 30 ns through a handle in a field). They look their function up among the libraries of their
 * class loader when it is called first. So every candidate is opened and checked with {@code dlopen} first, where a bad
 * one can be put away again, and only the chosen file goes to {@link System#load}, which makes it known to the class
 * loader. One library of a kind per class loader follows from that; asking for a second one is an error. The library is
 * never unloaded: it has threads.
 */
public final class NativeLibrary {

    private static final Map<String, NativeLibrary> LOADED = new HashMap<>();

    /** There is no library of that kind, not even a broken one. The message says where it was looked for. */
    static final class NotFoundException extends MillraceException {

        private static final long serialVersionUID = 1L;

        NotFoundException(String message) {
            super(message);
        }
    }

    private final Search search;
    private final Path path;
    private final MemorySegment handle;
    private final List<String> setAside;
    /** A bit for each function, 64 in a word. */
    private final long[] lacking;

    NativeLibrary(Search search, Path path, MemorySegment handle, List<String> setAside) {
        this.search = search;
        this.path = path;
        this.handle = handle;
        this.setAside = List.copyOf(setAside);
        long[] bits = new long[search.functions().size() / Long.SIZE + 1];
        for (NativeFunction function : search.functions()) {
            if (DynamicLoader.find(handle, function.symbol()) == null) {
                bits[function.ordinal() / Long.SIZE] |= 1L << function.ordinal();
            }
        }
        this.lacking = bits;
    }

    /**
     * Finds, checks and binds a library, or returns the one that is bound.
     *
     * @param explicit the file, its folder, or a name for the dynamic loader; nothing else is tried then. Null or
     *                 empty: what is bound already, or else what the system property says, or the environment variable,
     *                 or what the usual names and places hold
     * @throws MillraceException if there is none, if it is broken, or if another file of this kind is bound; the
     *                           message says where it was looked for, what each candidate's problem was, and how to
     *                           point at another
     */
    public static NativeLibrary load(Search search, @Nullable String explicit) {
        synchronized (LOADED) {
            NativeLibrary bound = LOADED.get(search.title());
            if (isSet(explicit)) {
                return bind(search, search.setting().name(), explicit, bound);
            }
            if (bound != null) {
                return bound;
            }
            Configuration.Found found = Configuration.find(search.setting(), Map.of());
            return switch (found.origin().source()) {
                case DEFAULT -> keep(new LibraryAttempt(search).usual());
                case PROPERTY -> bind(search, "-D" + found.origin().name(), found.text(), null);
                default -> bind(search, found.origin().name(), found.text(), null);
            };
        }
    }

    /**
     * {@return a copy of a zero-terminated string that a native library handed out; null for a null pointer}
     *
     * @param string a {@code const char *} in UTF-8
     */
    @SuppressWarnings("restricted")
    public static @Nullable String text(MemorySegment string) {
        return string.address() == 0 ? null : string.reinterpret(Long.MAX_VALUE).getString(0);
    }

    private static boolean isSet(@Nullable String value) {
        return value != null && !value.isBlank();
    }

    private static NativeLibrary bind(Search search, String origin, String wanted, @Nullable NativeLibrary bound) {
        NativeLibrary chosen = new LibraryAttempt(search).explicit(origin, wanted, bound);
        return chosen == bound ? bound : keep(chosen);
    }

    private static NativeLibrary keep(NativeLibrary library) {
        LOADED.put(library.search.title(), library);
        return library;
    }

    /** The file. */
    public Path path() {
        return path;
    }

    /** Candidates that came first and were not usable: one text each, file and problem. */
    public List<String> setAside() {
        return setAside;
    }

    /** Looks up any symbol. */
    public Optional<MemorySegment> find(String symbol) {
        return Optional.ofNullable(DynamicLoader.find(handle, symbol));
    }

    /**
     * Whether the library has a function. Costs one bit test.
     *
     * @return false if it is too old, or too new, to export it
     */
    public boolean has(NativeFunction function) {
        return (lacking[function.ordinal() / Long.SIZE] >>> function.ordinal() & 1) == 0;
    }

    /**
     * Says what is needed to call a function.
     *
     * @return an exception with the function, the library's version and path, and the release that has it
     */
    public MillraceException lacks(NativeFunction function, String version) {
        return new MillraceException(function.symbol() + " is not in the loaded " + search.title() + " " + version
                + " (" + path + "): " + search.title() + " " + function.since()
                + " and later have it. To load another one, " + search.pointer());
    }

    /**
     * How a native library is found.
     *
     * @param title       what people call it: {@code "NCCL"}
     * @param setting     names the file, or a folder that holds it
     * @param directories where to look for them after the dynamic loader has
     * @param functions   what the binding calls
     * @param remedy      how to get the library: a sentence
     */
    public record Search(String title, Setting<?> setting, List<String> names, List<Path> directories,
            List<? extends NativeFunction> functions, String remedy) {

        /** Copies the lists. */
        public Search {
            names = List.copyOf(names);
            directories = List.copyOf(directories);
            functions = List.copyOf(functions);
        }

        /** How to point at the library. */
        String pointer() {
            return "set " + setting.name() + "=/path/to/" + names.getFirst() + " (or -D" + setting.property() + "=...)";
        }
    }

    /**
     * What became of looking for a library, for {@code millrace doctor}.
     *
     * @param path     the file that was loaded; null if none was
     * @param version  its version as people write it; null if none was loaded, or it did not say
     * @param problem  why it cannot be used; null if it can
     * @param missing  whether the problem is that there is none
     * @param setAside candidates that came before the loaded one and were not usable: file and problem
     */
    public record Report(String title, @Nullable Path path, @Nullable String version, @Nullable String problem,
            boolean missing, List<String> setAside) {

        /** Copies the list. */
        public Report {
            setAside = List.copyOf(setAside);
        }

        /** A library that could not be loaded. */
        public static Report unusable(String title, MillraceException problem) {
            return new Report(title, null, null, problem.getMessage(),
                    problem instanceof NativeLibrary.NotFoundException, List.of());
        }
    }
}
