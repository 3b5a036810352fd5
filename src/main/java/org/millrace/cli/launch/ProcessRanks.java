package org.millrace.cli.launch;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.IntFunction;

/** Ranks as processes of their own. */
public final class ProcessRanks implements Ranks {

    /** For a rank that was told to end to do so in peace; then it is terminated, then killed. */
    private static final Duration PATIENCE = Duration.ofSeconds(3);

    private final List<RankProcess> processes = new ArrayList<>();
    private final int size;
    private final IntFunction<List<String>> command;
    private final IntFunction<Map<String, String>> variables;
    private final Consumer<RankEvent> events;
    private final PrintWriter err;
    private boolean stopped;

    /**
     * Ranks that do not run yet.
     *
     * @param size      how many
     * @param command   the command that starts a rank
     * @param variables what a rank has in its environment besides, unless it is set there already
     * @param events    receives what they report
     * @param err       receives what they write besides
     */
    public ProcessRanks(int size, IntFunction<List<String>> command, IntFunction<Map<String, String>> variables,
            Consumer<RankEvent> events, PrintWriter err) {
        this.size = size;
        this.command = command;
        this.variables = variables;
        this.events = events;
        this.err = err;
    }

    @Override
    public synchronized void start() {
        for (int rank = 0; rank < size && !stopped; rank++) {
            processes.add(RankProcess.start(rank, command.apply(rank), variables.apply(rank), events, err));
        }
    }

    @Override
    public synchronized void stop() {
        stopped = true;
        processes.forEach(RankProcess::askToEnd);
        if (!awaitEnd(PATIENCE)) {
            processes.forEach(RankProcess::terminate);
            if (!awaitEnd(PATIENCE)) {
                processes.forEach(RankProcess::kill);
                awaitEnd(PATIENCE);
            }
        }
    }

    @Override
    public synchronized boolean awaitEnd(Duration patience) {
        RunDeadline deadline = RunDeadline.after(patience);
        boolean ended = true;
        for (RankProcess process : processes) {
            ended &= process.awaitEnd(deadline.remaining());
        }
        return ended;
    }
}
