package org.millrace.library;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.config.Configuration;
import org.millrace.config.Setting;

/**
 * A native library, loaded once and permanently, and bound to the generated classes.
 *
 * <p>
 * The generated classes hold one {@code static final} method handle per function. The compiler inlines only this kind
 * of handle (6 ns per call; 30 ns through a handle in a field). At the first call of a function, the generated class
 * looks up the function in the libraries of the class loader. Every candidate file is therefore first opened and
 * checked with {@code dlopen}. An unusable file is closed again. Only the chosen file is passed to {@link System#load},
 * which registers the library with the class loader. A class loader can therefore have only one library of each kind,
 * and a request for a second library of this kind is an error. The library is never unloaded, because it has threads.
 */
public final class NativeLibrary {

    private static final Map<String, NativeLibrary> LOADED = new HashMap<>();

    /**
     * Thrown if no file of the requested library was found. A broken file causes a different exception. The message
     * states the places that were searched.
     */
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
    /**
     * Bit set of the functions that the library does not export. The index of a bit is the function's ordinal; each
     * word has 64 bits.
     */
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
     * Finds, checks and binds a library, or returns the library that is already bound.
     *
     * @param explicit a file, the folder that contains it, or a name for the dynamic loader; no other candidate is
     *                 tried. If this argument is null or blank, the result is the library that is already bound. If
     *                 none is bound, the system property or the environment variable names the library. If neither is
     *                 set, the usual names and places are searched.
     * @throws MillraceException if no library is found, if it is broken, or if another file of this kind is bound; the
     *                           message states the places that were searched, each candidate's problem, and the setting
     *                           that can name another file
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
                case DEFAULT -> keep(new Attempt(search).usual());
                case PROPERTY -> bind(search, "-D" + found.origin().name(), found.text(), null);
                default -> bind(search, found.origin().name(), found.text(), null);
            };
        }
    }

    /**
     * {@return a copy of a zero-terminated string from a native library; null for a null pointer}
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
        NativeLibrary chosen = new Attempt(search).explicit(origin, wanted, bound);
        return chosen == bound ? bound : keep(chosen);
    }

    private static NativeLibrary keep(NativeLibrary library) {
        LOADED.put(library.search.title(), library);
        return library;
    }

    public Path path() {
        return path;
    }

    /**
     * Returns the unusable candidates that were tried before this library: one text for each, with file and problem.
     */
    public List<String> setAside() {
        return setAside;
    }

    public Optional<MemorySegment> find(String symbol) {
        return Optional.ofNullable(DynamicLoader.find(handle, symbol));
    }

    /** Returns whether the loaded release of the library exports a function. Costs one bit test. */
    public boolean has(NativeFunction function) {
        return (lacking[function.ordinal() / Long.SIZE] >>> function.ordinal() & 1) == 0;
    }

    /**
     * Creates an exception for a function that the library does not export.
     *
     * @return exception with a message that names the function, the version and the path of the library, and the first
     *         release that exports the function
     */
    public MillraceException lacks(NativeFunction function, String version) {
        return new MillraceException(function.symbol() + " is not in the loaded " + search.title() + " " + version
                + " (" + path + "): " + search.title() + " " + function.since()
                + " and later have it. To load another one, " + search.pointer());
    }

    /** One search for a library, with the unusable candidates and their problems. */
    private static final class Attempt {

        private final Search search;
        private final List<String> missing = new ArrayList<>();
        private final List<String> broken = new ArrayList<>();

        Attempt(Search search) {
            this.search = search;
        }

        NativeLibrary usual() {
            for (String name : search.names()) {
                NativeLibrary library = open(name, null);
                if (library != null) {
                    return library;
                }
            }
            for (Path directory : search.directories()) {
                for (String name : search.names()) {
                    Path file = directory.resolve(name);
                    NativeLibrary library = Files.exists(file) ? open(file.toString(), null) : null;
                    if (library != null) {
                        return library;
                    }
                }
            }
            String where =
                    "looked for " + String.join(", ", search.names()) + " through the dynamic loader (LD_LIBRARY_PATH "
                            + Optional.ofNullable(System.getenv("LD_LIBRARY_PATH"))
                                    .map(value -> "is " + value)
                                    .orElse("is not set")
                            + ") and in " + (search.directories().isEmpty() ? "no folder"
                                    : String.join(", ", search.directories().stream().map(Path::toString).toList()));
            String remedy = where + ". " + search.remedy() + ", or " + search.pointer();
            throw broken.isEmpty() ? new NotFoundException(search.title() + " was not found: " + remedy)
                    : new MillraceException(brokenText() + ". No other was found: " + remedy);
        }

        NativeLibrary explicit(String origin, String wanted, @Nullable NativeLibrary bound) {
            NativeLibrary library = null;
            if (wanted.indexOf('/') < 0) {
                library = open(wanted, bound);
            } else {
                Path file = path(origin, wanted);
                if (!Files.exists(file)) {
                    throw new MillraceException(origin + " names " + file + " as " + search.title()
                            + ", but there is no such file. Correct it, or unset it to have "
                            + search.names().getFirst() + " looked for in the usual places");
                }
                List<Path> files = Files.isDirectory(file)
                        ? search.names().stream().map(file::resolve).filter(Files::exists).toList()
                        : List.of(file);
                for (Path candidate : files) {
                    library = library != null ? library : open(candidate.toAbsolutePath().toString(), bound);
                }
                if (files.isEmpty()) {
                    missing.add(file + " is a folder without " + String.join(" or ", search.names()));
                }
            }
            if (library == null) {
                missing.addAll(broken);
                throw new MillraceException(origin + "=" + wanted + " is not a usable " + search.title() + ": "
                        + String.join("; ", missing) + ". Correct it, or unset it to have " + search.names().getFirst()
                        + " looked for in the usual places");
            }
            return library;
        }

        /** Opens and binds a candidate. Returns null if the candidate is missing or broken. */
        private @Nullable NativeLibrary open(String candidate, @Nullable NativeLibrary bound) {
            DynamicLoader.Opened opened = DynamicLoader.open(candidate);
            if (opened.error() != null) {
                // The dynamic loader's error text has the form "name: reason". A name that the loader finds nowhere
                // counts as missing. Every other failure means that the library is broken.
                boolean unknown = candidate.indexOf('/') < 0
                        && opened.error().startsWith(candidate + ": cannot open shared object file");
                (unknown ? missing : broken)
                        .add(opened.error().startsWith(candidate) ? opened.error() : candidate + ": " + opened.error());
                return null;
            }
            String problem = lacksEssentials(opened.handle());
            if (problem == null) {
                try {
                    Path file = fileOf(opened.handle());
                    if (bound != null && bound.path().equals(file)) {
                        DynamicLoader.close(opened.handle());
                        return bound;
                    }
                    if (bound != null) {
                        DynamicLoader.close(opened.handle());
                        throw new MillraceException(search.title() + " is already loaded from " + bound.path() + "; "
                                + file + " cannot be loaded beside it in one program. Choose one, in "
                                + search.setting().name() + " or -D" + search.setting().property());
                    }
                    bind(file);
                    return new NativeLibrary(search, file, opened.handle(), broken);
                } catch (UnsatisfiedLinkError refused) {
                    problem = refused.getMessage();
                } catch (IOException vanished) {
                    problem = "cannot be read: " + vanished.getMessage();
                }
            }
            broken.add(candidate + ": " + problem);
            DynamicLoader.close(opened.handle());
            return null;
        }

        /**
         * Names the functions that this library lacks although every release has them; null if there are none. A
         * library without such a function is another library, or is damaged.
         */
        private @Nullable String lacksEssentials(MemorySegment handle) {
            List<String> lacking = search.functions()
                    .stream()
                    .filter(function -> function.since() == null)
                    .map(NativeFunction::symbol)
                    .filter(symbol -> DynamicLoader.find(handle, symbol) == null)
                    .toList();
            if (lacking.isEmpty()) {
                return null;
            }
            String shown = String.join(", ", lacking.subList(0, Math.min(3, lacking.size())));
            return "has no " + shown + (lacking.size() > 3 ? " and " + (lacking.size() - 3) + " more functions" : "")
                    + ", so it is not " + search.title() + ", or a damaged one";
        }

        private Path fileOf(MemorySegment handle) throws IOException {
            MemorySegment essential = DynamicLoader.find(handle, search.functions().getFirst().symbol());
            return Path.of(DynamicLoader.fileOf(essential)).toRealPath();
        }

        private String brokenText() {
            return search.title() + " could not be loaded: " + String.join("; ", broken);
        }

        private static Path path(String origin, String wanted) {
            try {
                return Path.of(wanted);
            } catch (InvalidPathException malformed) {
                throw new MillraceException(origin + "=" + wanted + " is not a path: " + malformed.getReason(),
                        malformed);
            }
        }

        /**
         * Registers the library with the class loader of this class, which must be the class loader of the generated
         * classes.
         */
        @SuppressWarnings("restricted")
        private static void bind(Path file) {
            System.load(file.toString());
        }
    }

    /**
     * Description of a native library, sufficient to find it.
     *
     * @param title       usual name of the library, for instance {@code "NCCL"}
     * @param setting     setting that names the file, or a folder that contains it
     * @param names       file names of the library, in the order of the search
     * @param directories directories to search after the dynamic loader
     * @param functions   functions that the binding calls
     * @param remedy      sentence that states how to get the library
     */
    public record Search(String title, Setting<?> setting, List<String> names, List<Path> directories,
            List<? extends NativeFunction> functions, String remedy) {

        public Search {
            names = List.copyOf(names);
            directories = List.copyOf(directories);
            functions = List.copyOf(functions);
        }

        String pointer() {
            return "set " + setting.name() + "=/path/to/" + names.getFirst() + " (or -D" + setting.property() + "=...)";
        }
    }

    /**
     * Result of a search for a library, for {@code millrace doctor}.
     *
     * @param title    usual name of the library
     * @param path     file that was loaded; null if no file was loaded
     * @param version  version of the library as text; null if no file was loaded, or if the library returned no version
     * @param problem  reason why the library cannot be used; null if it can be used
     * @param missing  whether the problem is that no library was found
     * @param setAside unusable candidates that were tried, each with its file and its problem
     */
    public record Report(String title, @Nullable Path path, @Nullable String version, @Nullable String problem,
            boolean missing, List<String> setAside) {

        public Report {
            setAside = List.copyOf(setAside);
        }

        public static Report unusable(String title, MillraceException problem) {
            return new Report(title, null, null, problem.getMessage(),
                    problem instanceof NativeLibrary.NotFoundException, List.of());
        }
    }

    /** A function that a binding calls. Each library has an enum that implements this interface. */
    public interface NativeFunction {

        /**
         * Name of a function in a library, and the releases that export it.
         *
         * @param symbol exported name, for instance {@code "ncclCommSplit"}
         * @param since  first release of the library that exports the function, for instance {@code "2.18"}. Null for a
         *               function that every supported release exports: a library without such a function is refused
         *               when the library is loaded
         */
        record Export(String symbol, @Nullable String since) {
        }

        Export export();

        /** Index of this function's enum constant in its enum, from 0. */
        int ordinal();

        default String symbol() {
            return export().symbol();
        }

        /** Returns the first release that exports the function; null if every supported release does. */
        default @Nullable String since() {
            return export().since();
        }
    }
}
