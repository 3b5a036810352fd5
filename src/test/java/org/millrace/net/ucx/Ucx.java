package org.millrace.net.ucx;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.Optional;
import org.millrace.net.ucx.UcxNetwork.UcxUnavailableException;

/** Whether this machine has UCX. */
public final class Ucx {

    private Ucx() {}

    /** Skips a test where there is no libucp, and says why. */
    public static void assumeUsable() {
        String why = whyNot();
        assumeTrue(why == null, why);
    }

    /** Why UCX cannot be used here; null if it can. */
    public static String whyNot() {
        try {
            UcxContext.get(Optional.empty());
            return null;
        } catch (UcxUnavailableException e) {
            return e.getMessage();
        }
    }

    /** Skips a test over the network "ucx" where there is no libucp. */
    public static void assumeUsable(String network) {
        if (network.equals("ucx")) {
            assumeUsable();
        }
    }
}
