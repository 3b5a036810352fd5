package org.millrace.engine;

import java.util.List;
import org.millrace.abi.ConnectionLayout;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.net.link.Fault;
import org.millrace.net.link.LinkNetwork;
import org.millrace.proxy.SliceLists.PieceCheck;

/** Settings of the emulated device whose text only its own parts can read. */
public final class EngineSettings {

    private EngineSettings() {}

    /**
     * Refuses what every rank would refuse when it joins, so that it can be said once, and before there are ranks.
     *
     * @throws ConfigurationException if a setting is not usable; the message says what is allowed
     */
    public static void require(Configuration configuration) {
        AlgorithmChoice.of(configuration);
        ProtocolChoice.of(configuration);
        refuseUnpack(configuration);
        Fault.of(configuration);
        LinkNetwork.require(configuration, List.of());
    }

    /** A list of pieces is for a slice of 4 MiB at the most, which is two slots. */
    static void refuseUnpack(Configuration configuration) {
        long most = PieceCheck.MAX_SLICE_BYTES / 2 * ConnectionLayout.SLOTS;
        if (configuration.get(Settings.NET_DEVICE_UNPACK).orElse(false)
                && configuration.get(Settings.BUFFER_SIZE) > most) {
            throw new ConfigurationException(Settings.BUFFER_SIZE.name() + " of more than " + (most >> 20)
                    + " MiB has slices that kernels cannot gather (" + Settings.NET_DEVICE_UNPACK.name()
                    + "=1): set one of them to less");
        }
    }
}
