package org.millrace.net.ucx;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.Optional;
import org.millrace.net.ucx.UcxNetwork.UcxUnavailableException;

/** Checks whether this machine has UCX. */
public final class Ucx {

    private Ucx() {}

    /** Skips a test if UCX is not usable, and reports the reason. */
    public static void assumeUsable() {
        String why = whyNot();
        assumeTrue(why == null, why);
    }

    /** Returns the reason why UCX cannot be used on this machine, or null if UCX is usable. */
    public static String whyNot() {
        try {
            UcxContext.get(Optional.empty());
            return null;
        } catch (UcxUnavailableException e) {
            return e.getMessage();
        }
    }

    /** Skips a test over the network "ucx" if UCX is not usable. */
    public static void assumeUsable(String network) {
        if (network.equals("ucx")) {
            assumeUsable();
        }
    }
}
