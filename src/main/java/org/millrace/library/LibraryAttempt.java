package org.millrace.library;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/** One search: what was tried, and what came of it. */
final class LibraryAttempt {

    private final NativeLibrary.Search search;
    private final List<String> missing = new ArrayList<>();
    private final List<String> broken = new ArrayList<>();

    LibraryAttempt(NativeLibrary.Search search) {
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
        String where = "looked for " + String.join(", ", search.names())
                + " through the dynamic loader (LD_LIBRARY_PATH "
                + Optional.ofNullable(System.getenv("LD_LIBRARY_PATH")).map(value -> "is " + value).orElse("is not set")
                + ") and in " + (search.directories().isEmpty() ? "no folder"
                        : String.join(", ", search.directories().stream().map(Path::toString).toList()));
        String remedy = where + ". " + search.remedy() + ", or " + search.pointer();
        throw broken.isEmpty() ? new NativeLibrary.NotFoundException(search.title() + " was not found: " + remedy)
                : new MillraceException(brokenText() + ". No other was found: " + remedy);
    }

    NativeLibrary explicit(String origin, String wanted, @Nullable NativeLibrary bound) {
        NativeLibrary library = null;
        if (wanted.indexOf('/') < 0) {
            library = open(wanted, bound);
        } else {
            Path file = path(origin, wanted);
            if (!Files.exists(file)) {
                throw new MillraceException(origin + " says that " + search.title() + " is " + file
                        + ", but there is no such file. Correct it, or unset it to" + " have "
                        + search.names().getFirst() + " looked for in the usual places");
            }
            List<Path> files =
                    Files.isDirectory(file) ? search.names().stream().map(file::resolve).filter(Files::exists).toList()
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

    /** Null if the candidate is missing or broken. */
    private @Nullable NativeLibrary open(String candidate, @Nullable NativeLibrary bound) {
        DynamicLoader.Opened opened = DynamicLoader.open(candidate);
        if (opened.error() != null) {
            // The loader says "name: reason"; a name it does not know at all is missing, everything else is broken.
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
                    throw new MillraceException(search.title() + " is already loaded from " + bound.path() + "; " + file
                            + " cannot be loaded beside it in one program. Choose one, in " + search.setting().name()
                            + " or -D" + search.setting().property());
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

    /** What a library lacks without which it is not the one that was looked for; null if it has all of it. */
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
            throw new MillraceException(origin + "=" + wanted + " is not a path: " + malformed.getReason(), malformed);
        }
    }

    /** Must be called by a class of the same class loader as the generated ones. */
    @SuppressWarnings("restricted")
    private static void bind(Path file) {
        System.load(file.toString());
    }
}
