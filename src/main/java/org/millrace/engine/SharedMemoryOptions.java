package org.millrace.engine;

import java.util.Optional;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;

/**
 * Whether, and how, ranks of one host share memory, and whether transports of other jars are asked first.
 *
 * @param others         {@code NCCL_MY_TRANSPORT_ENABLE}
 * @param refusal        why they must not, as every step is to be a frame of a network; empty if they may
 * @param p2pDisabled    {@code NCCL_P2P_DISABLE}
 * @param p2pCopies      whether the sender's proxy copies over P2P, instead of its device
 * @param shmDisabled    {@code NCCL_SHM_DISABLE}
 * @param senderCopies   whether the sender's proxy copies over SHM
 * @param receiverCopies whether the receiver's does
 * @param senderMakes    whether the sender makes the memory of SHM; the receiver else
 */
record SharedMemoryOptions(boolean others, Optional<String> refusal, boolean p2pDisabled, boolean p2pCopies,
        boolean shmDisabled, boolean senderCopies, boolean receiverCopies, boolean senderMakes) {

    private static final int SENDER = 1;
    private static final int RECEIVER = 2;

    public static SharedMemoryOptions of(Configuration configuration) {
        int copies = configuration.get(Settings.SHM_MEMCPY) ? configuration.get(Settings.SHM_MEMCPY_MODE) : 0;
        return new SharedMemoryOptions(configuration.get(Settings.MY_TRANSPORT_ENABLE), refusal(configuration),
                configuration.get(Settings.P2P_DISABLE), configuration.get(Settings.P2P_MEMCPY),
                configuration.get(Settings.SHM_DISABLE), (copies & SENDER) != 0, (copies & RECEIVER) != 0,
                configuration.get(Settings.SHM_LOCALITY) == SENDER);
    }

    private static Optional<String> refusal(Configuration configuration) {
        String network = configuration.get(Settings.NETWORK);
        if (!network.equals(Settings.NETWORK.defaultValue())) {
            return Optional.of("MILLRACE_NET=" + network);
        }
        if (configuration.get(Settings.NET_DEVICE_UNPACK).orElse(false)) {
            return Optional.of(Settings.NET_DEVICE_UNPACK.name() + "=1 is of networks");
        }
        if (configuration.get(Settings.LINK).isPresent()) {
            return Optional.of(Settings.LINK.name() + " is of networks");
        }
        return configuration.get(Settings.FAULT).map(fault -> "MILLRACE_FAULT is planted in a network");
    }
}
