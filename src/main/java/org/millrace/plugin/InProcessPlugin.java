package org.millrace.plugin;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.Map;
import org.millrace.MillraceException;
import org.millrace.gin.GinServed;
import org.millrace.library.BundledLibrary;
import org.millrace.nccl.NcclResult;

/** For Java programs: makes this JVM the one that serves the plugin, and NCCL open it. */
public final class InProcessPlugin {

    private static final String PLUGIN = "NCCL_NET_PLUGIN";
    private static final String REFERENCES = "NCCL_NET_PLUGIN_REF_COUNT";

    private static boolean active;

    private InProcessPlugin() {}

    /**
     * Sets variables for NCCL as {@link #activate()} does: to be called before the first communicator is made, as NCCL
     * reads each of them once.
     */
    public static synchronized void configure(Map<String, String> variables) {
        variables.forEach(NativeEnvironment::set);
    }

    /**
     * Loads the shim, fills its tables, and sets {@code NCCL_NET_PLUGIN}. To be called before the first communicator is
     * made, as NCCL reads that variable once. If the user has set it, nothing is done: then NCCL opens what it names,
     * and if that is Millrace's shim, it finds this JVM by itself. Further calls do nothing.
     *
     * @return whether NCCL will open this plugin because of this call, or an earlier one
     * @throws MillraceException if the shim cannot be loaded: the message says what to do
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
            // One more than NCCL counts: it does not close the plugin after the last communicator, and so does not
            // forget it.
            NativeEnvironment.set(REFERENCES, "1");
        }
        active = true;
        return true;
    }

    /** What this JVM has served of GIN's contexts, those included that were destroyed. */
    public static GinServed ginServed() {
        return GinGroup.Totals.served();
    }

    @SuppressWarnings("restricted") // our own library
    private static Path load(Path file) {
        try {
            // Links are resolved: the path that NCCL is told must be the one that the library is loaded by.
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
