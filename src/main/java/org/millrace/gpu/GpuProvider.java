package org.millrace.gpu;

import java.util.Map;
import java.util.Optional;
import org.millrace.Communicator;
import org.millrace.CommunicatorListener;
import org.millrace.CommunicatorProvider;
import org.millrace.MillraceException;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;

/** Provider of communicators that use libnccl, with one GPU for each rank. */
public final class GpuProvider implements CommunicatorProvider {

    /** Creates the provider, for {@link java.util.ServiceLoader}. */
    public GpuProvider() {}

    @Override
    public String device() {
        return "cuda";
    }

    /**
     * Loads the CUDA runtime and NCCL, and counts the GPUs. Does not initialize a GPU, and does not change a setting
     * that NCCL reads. Returns the reason why the provider cannot be used; empty if the provider can be used.
     */
    @Override
    public Optional<String> whyUnusable(Map<String, String> settings) {
        try {
            GpuRank.Libraries libraries = GpuRank.Libraries.load(Configuration.load(settings));
            libraries.cuda().deviceCount();
            return Optional.empty();
        } catch (ConfigurationException refused) {
            // An invalid setting does not make the provider unusable. The method join() reports the setting.
            return Optional.empty();
        } catch (MillraceException | LinkageError unusable) {
            return Optional.of(reason(unusable));
        }
    }

    /**
     * Returns the message of a failure. If the initialization of a class failed, the error has no message, but its
     * cause has one.
     */
    private static String reason(Throwable unusable) {
        Throwable reason = unusable;
        while (reason.getMessage() == null && reason.getCause() != null) {
            reason = reason.getCause();
        }
        return reason.getMessage() == null ? reason.toString() : reason.getMessage();
    }

    @Override
    public Communicator join(String rendezvous, int rank, int size, Map<String, String> settings,
            CommunicatorListener listener) {
        Configuration configuration = Configuration.load(settings);
        return GpuCommunicator.join(GpuRank.prepare(configuration), rendezvous, rank, size, configuration, listener);
    }
}
