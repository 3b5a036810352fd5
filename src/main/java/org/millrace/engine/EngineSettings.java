package org.millrace.engine;

import java.util.List;
import java.util.Optional;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.engine.options.AlgorithmChoice;
import org.millrace.engine.options.ProtocolChoice;
import org.millrace.net.fault.Fault;

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
        ProtocolChoice.of(configuration, true);
        refuseUnpack(configuration);
        faults(configuration);
    }

    /** Kernels that gather what they receive are libnccl's alone: here a network stores it where it belongs. */
    static void refuseUnpack(Configuration configuration) {
        if (configuration.get(Settings.NET_DEVICE_UNPACK).orElse(false)) {
            throw new ConfigurationException(Settings.NET_DEVICE_UNPACK.name()
                    + "=1 is for kernels under libnccl; the emulated device has none that unpack, as what it receives"
                    + " is stored where it belongs; unset it, or set it to 0");
        }
    }

    /**
     * The faults to plant; empty if none were asked for.
     *
     * @throws ConfigurationException if the text cannot be read; the message says what is allowed
     */
    public static Optional<List<Fault>> faults(Configuration configuration) {
        try {
            return configuration.get(Settings.FAULT).map(Fault::parse);
        } catch (IllegalArgumentException refused) {
            throw new ConfigurationException(Settings.FAULT.name() + ": " + refused.getMessage());
        }
    }
}
