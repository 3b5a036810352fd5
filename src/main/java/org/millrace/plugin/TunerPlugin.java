package org.millrace.plugin;

import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.plugin.host.HandleTable;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.loss.LossWatch;
import org.millrace.plugin.path.TunerChoices;

/**
 * Operations of NCCL's tuner tables. NCCL calls them for every collective that a program enqueues. {@link TunerChoices}
 * chooses the protocol.
 */
final class TunerPlugin {

    private final LongFunction<@Nullable TunerChoices> choices;
    private final LossWatch losses;
    private final HandleTable handles = new HandleTable();

    private record Tuned(long communicator, long ranks, TunerChoices by) {
    }

    /**
     * @param choices function that takes the address of an NCCL library. It returns the tuner's choices for this
     *                library, or null if the library has no connections
     * @param losses  communicators that have lost a peer
     */
    public TunerPlugin(LongFunction<@Nullable TunerChoices> choices, LossWatch losses) {
        this.choices = choices;
        this.losses = losses;
    }

    /**
     * Initializes a tuner. The context is null if the tuner has no choice to make, for instance because NCCL's own
     * proxy moves the data. The shim then makes no calls for this tuner.
     */
    public void tunerInit(long context, long communicator, long ranks, long nodes, long library) {
        TunerChoices by = choices.apply(library);
        NativeMemory.putLong(context,
                by != null && by.path().takesOver() && nodes > 1 ? handles.add(new Tuned(communicator, ranks, by)) : 0);
    }

    /**
     * Tunes a collective. NCCL calls this function for every enqueued collective and returns its error to the program.
     * NCCL accepts an error from no other callback while a communicator is in use. A program that enqueues on a
     * communicator with a lost peer therefore receives the error from this function.
     */
    public void tunerGetCollInfo(long context, long bytes, long costs, int algorithms, int protocols, long channels) {
        Tuned tuned = handles.get(context, Tuned.class);
        failIfPeerIsLost(tuned.communicator);
        tuned.by.path().operationComing();
        tuned.by.tune(tuned.ranks, bytes, costs, algorithms, protocols, channels);
    }

    private void failIfPeerIsLost(long communicator) {
        String problem = losses.deliver(communicator);
        if (problem != null) {
            throw new ConnectionException("the communicator has lost a peer, abort it: " + problem);
        }
    }

    public void tunerFinalize(long context) {
        handles.remove(context, Tuned.class);
    }
}
