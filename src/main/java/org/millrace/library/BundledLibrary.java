package org.millrace.library;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.function.Function;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.foreign.CFunction;

/** The C library that is part of Millrace. It is a resource of the jar or of the class directory. */
public final class BundledLibrary {

    public static final String NAME = "libnccl-net-millrace.so";

    /** Maximum length that NCCL accepts for a plugin's path, in characters. */
    private static final int MAX_PATH_LENGTH = 254;

    private static final Logger LOG = LogManager.getLogger(BundledLibrary.class);

    private BundledLibrary() {}

    /**
     * Holder of the library's symbols. The JVM initializes this class, and so loads the library, at the first use. The
     * library is loaded only once, because it has state.
     */
    private static final class Loaded {

        static final SymbolLookup SYMBOLS = load(Loaded::open);

        private Loaded() {}

        @SuppressWarnings("restricted") // loading runs the library's code, which is part of Millrace
        private static SymbolLookup open(Path file) {
            return SymbolLookup.libraryLookup(file, Arena.global());
        }
    }

    /** Returns the symbols of the library, valid as long as the process lives. */
    public static SymbolLookup symbols() {
        return Loaded.SYMBOLS;
    }

    /**
     * Prevents the inheritance of file descriptors that this JVM opens after this call. The descriptors are then not
     * passed to programs and processes that native libraries start or fork ({@code descriptors.c}). The JDK itself
     * closes all descriptors in processes that it starts.
     */
    public static void keepDescriptors() {
        try {
            CFunction.at(symbols().find("millraceKeepDescriptors").orElseThrow()).call();
        } catch (LinkageError without) {
            LOG.debug("programs that native libraries start inherit this process's descriptors", without);
        }
    }

    private static URL resource() {
        String architecture = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        String platform = System.getProperty("os.name").toLowerCase(Locale.ROOT) + "-"
                + (architecture.equals("amd64") ? "x86_64" : architecture);
        String name = "/META-INF/native/" + platform + "/" + NAME;
        URL resource = BundledLibrary.class.getResource(name);
        if (resource == null) {
            throw new MillraceException("this build of Millrace has no NCCL plugin for " + platform + " (" + name
                    + "); build it on such a machine");
        }
        return resource;
    }

    /** Returns the library's file if the resource is a separate file; null if it is packed in a jar. */
    public static @Nullable Path file() {
        URL resource = resource();
        try {
            return resource.getProtocol().equals("file") ? Path.of(resource.toURI()) : null;
        } catch (URISyntaxException e) {
            throw new MillraceException("cannot determine the path of " + resource, e);
        }
    }

    /**
     * Calls a function of the caller with a file that contains the library. The function must load the library, because
     * this method may delete the file afterwards. A loaded library does not need its file.
     */
    public static <T> T load(Function<Path, T> loader) {
        Path file = file();
        if (file != null) {
            return loader.apply(file);
        }
        try {
            Path directory = Files.createTempDirectory("millrace");
            Path extracted = directory.resolve(NAME);
            try {
                extract(extracted);
                return loader.apply(extracted);
            } finally {
                Files.deleteIfExists(extracted);
                Files.delete(directory);
            }
        } catch (IOException e) {
            throw new MillraceException("cannot unpack " + NAME
                    + " into the directory for temporary files (-Djava.io.tmpdir): " + e.getMessage(), e);
        }
    }

    /** Writes the library to a file that does not exist yet. */
    public static void extract(Path file) {
        try (InputStream from = resource().openStream()) {
            Files.copy(from, file);
        } catch (IOException e) {
            throw new MillraceException("cannot write the plugin's library to " + file + ": " + e.getMessage(), e);
        }
    }

    /**
     * Checks whether NCCL_NET_PLUGIN can contain a path. NCCL reads the variable as a list separated by commas, and
     * limits the length of a name.
     */
    public static void checkName(Path path) {
        String name = path.toString();
        if (name.length() > MAX_PATH_LENGTH || name.indexOf(',') >= 0) {
            throw new MillraceException("NCCL_NET_PLUGIN cannot name " + name + ": NCCL takes up to " + MAX_PATH_LENGTH
                    + " characters, and none of them a comma; choose another directory");
        }
    }
}
