package org.millrace.plugin;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.Map;
import org.millrace.MillraceException;
import org.millrace.library.BundledLibrary;
import org.millrace.nccl.NcclResult;
import org.millrace.plugin.host.NativeEnvironment;

/** Runs the plugin inside the JVM of a Java program. NCCL opens the plugin's shim, and the shim calls this JVM. */
public final class InProcessPlugin {

    private static final String PLUGIN = "NCCL_NET_PLUGIN";
    private static final String REFERENCES = "NCCL_NET_PLUGIN_REF_COUNT";

    private static boolean active;

    private InProcessPlugin() {}

    /**
     * Sets variables in the native environment, where NCCL reads them. Call this method before the first communicator
     * is created, because NCCL reads each variable once.
     */
    public static synchronized void configure(Map<String, String> variables) {
        variables.forEach(NativeEnvironment::set);
    }

    /**
     * Loads the shim, fills its tables, and sets {@code NCCL_NET_PLUGIN}. Call this method before the first
     * communicator is created, because NCCL reads the variable once. If the user has set the variable, this method does
     * nothing, and NCCL opens the user's library. If that library is Millrace's shim, the shim finds this JVM itself.
     * Further calls do nothing.
     *
     * @return whether NCCL will open this plugin because of this or an earlier call
     * @throws MillraceException if the shim cannot be loaded; the message names the remedy
     */
    public static synchronized boolean activate() {
        if (active) {
            return true;
        }
        String chosen = NativeEnvironment.get(PLUGIN);
        if (chosen != null && !chosen.isEmpty()) {
            return false;
        }
        Path path = BundledLibrary.load(InProcessPlugin::load);
        NativeEnvironment.set(PLUGIN, path.toString());
        if (NativeEnvironment.get(REFERENCES) == null) {
            // NCCL begins its count of the plugin's users with this value instead of 0. NCCL therefore does not close
            // the plugin after the last communicator, and the plugin keeps its state.
            NativeEnvironment.set(REFERENCES, "1");
        }
        active = true;
        return true;
    }

    @SuppressWarnings("restricted") // only Millrace's own library is loaded
    private static Path load(Path file) {
        try {
            // Links in the path are resolved, because NCCL and this loader must open the library by the same path.
            Path path = file.toRealPath();
            BundledLibrary.checkName(path);
            SymbolLookup library = SymbolLookup.libraryLookup(path, Arena.global());
            int result =
                    new Upcalls(PluginEntry.tables()).install(library.find("millraceInstallUpcalls").orElseThrow());
            if (result != NcclResult.SUCCESS.code()) {
                throw new MillraceException(
                        path + " and the classes of Millrace are of different releases; build both anew");
            }
            return path;
        } catch (IOException | IllegalArgumentException e) {
            throw new MillraceException("cannot load the NCCL plugin " + file + ": " + e.getMessage()
                    + "; is its directory mounted noexec? Name another for temporary files with -Djava.io.tmpdir", e);
        }
    }
}
