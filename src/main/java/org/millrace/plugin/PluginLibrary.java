package org.millrace.plugin;

import java.io.IOException;
import java.io.InputStream;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/** The shim as a resource of the jar, or of the directory of classes. */
final class PluginLibrary {

    static final String NAME = "libnccl-net-millrace.so";

    /** What NCCL keeps of a plugin's name. */
    private static final int MAX_PATH_LENGTH = 254;

    private PluginLibrary() {}

    private static URL resource() {
        String architecture = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
        String platform = System.getProperty("os.name").toLowerCase(Locale.ROOT) + "-"
                + (architecture.equals("amd64") ? "x86_64" : architecture);
        String name = "/META-INF/native/" + platform + "/" + NAME;
        URL resource = PluginLibrary.class.getResource(name);
        if (resource == null) {
            throw new MillraceException("this build of Millrace has no NCCL plugin for " + platform + " (" + name
                    + "); build it on such a machine");
        }
        return resource;
    }

    /** The library's file, if it lies in the file system as it is; null if it is packed into a jar. */
    static @Nullable Path file() {
        URL resource = resource();
        try {
            return resource.getProtocol().equals("file") ? Path.of(resource.toURI()) : null;
        } catch (URISyntaxException e) {
            throw new MillraceException("cannot tell the path of " + resource, e);
        }
    }

    /** Writes the library into a file that does not exist. */
    static void extract(Path file) {
        try (InputStream from = resource().openStream()) {
            Files.copy(from, file);
        } catch (IOException e) {
            throw new MillraceException("cannot write the plugin's library to " + file + ": " + e.getMessage(), e);
        }
    }

    /** Checks that NCCL_NET_PLUGIN can name a path: NCCL takes a list with commas, and names of limited length. */
    static void checkName(Path path) {
        String name = path.toString();
        if (name.length() > MAX_PATH_LENGTH || name.indexOf(',') >= 0) {
            throw new MillraceException("NCCL_NET_PLUGIN cannot name " + name + ": NCCL takes up to " + MAX_PATH_LENGTH
                    + " characters, and none of them a comma; choose another directory");
        }
    }
}
