package org.millrace.gpu;

import java.util.Map;
import java.util.Optional;
import org.millrace.Communicator;
import org.millrace.CommunicatorListener;
import org.millrace.CommunicatorProvider;
import org.millrace.MillraceException;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;

/** Makes communicators over libnccl, a GPU for each rank. */
public final class GpuProvider implements CommunicatorProvider {

    /** For {@link java.util.ServiceLoader}. */
    public GpuProvider() {}

    @Override
    public String device() {
        return "cuda";
    }

    /**
     * Loads the CUDA runtime and NCCL and counts the GPUs; takes none of them into use, and changes nothing that NCCL
     * reads.
     */
    @Override
    public Optional<String> whyUnusable(Map<String, String> settings) {
        try {
            GpuRank.Libraries libraries = GpuRank.Libraries.load(Configuration.load(settings));
            libraries.cuda().deviceCount();
            return Optional.empty();
        } catch (ConfigurationException refused) {
            return Optional.empty(); // not this provider's fault: join says what is wrong with the settings
        } catch (MillraceException | LinkageError unusable) {
            return Optional.of(reason(unusable));
        }
    }

    /** An error in a class's initialization says nothing itself: its cause does. */
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
