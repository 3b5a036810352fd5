package org.millrace.trace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;

/**
 * Reads the traces of a directory repeatedly. The trace of an ended process does not change. This class reads such a
 * trace again only if the ended process and this process had a communicator in common. Used by one thread at a time.
 */
final class GroupReading implements Hang.Reading {

    private static final Logger LOG = LogManager.getLogger(GroupReading.class);

    /**
     * Maximum error of a file's date in milliseconds. The error comes from the resolution of the file system's clock,
     * and from the difference between the file system's clock and this process's clock.
     */
    private static final long CLOCK_MILLIS = 2_000;
    private static final long UNLISTED = Long.MIN_VALUE;
    /**
     * Twice the longest time between two updates of a trace's date, in milliseconds. A process updates the date while
     * it has a communicator.
     */
    private static final long DATED_MILLIS = 120_000;

    private final Path directory;
    private final Path own;
    /**
     * Earliest date of traces to read. A trace with an earlier date belongs to a process that has had no communicator
     * since this process started.
     */
    private final long firstMillis = System.currentTimeMillis() - DATED_MILLIS;
    /** Traces of other processes in the directory when it was last listed. */
    private List<Path> files = List.of();
    /** Date of the directory when it was last listed, in milliseconds; {@link #UNLISTED} to list it again. */
    private long listed = UNLISTED;
    /** Communicators of this process when the directory was last listed. */
    private Set<Long> listedFor = Set.of();
    /** Communicators and joins of each ended process. The key is the process's trace. */
    private final Map<Path, Set<Long>> ended = new HashMap<>();

    /** @param own file with the trace of this process */
    GroupReading(Path directory, Path own) {
        this.directory = directory;
        this.own = own;
    }

    @Override
    public List<TracedProcess> read() throws IOException {
        TracedProcess self = TraceReader.read(own);
        Set<Long> mine = communicators(self);
        list(mine);
        List<TracedProcess> all =
                TraceReader.readAll(files.stream().filter(file -> mayConcern(ended.get(file), mine)).toList(),
                        (file, problem) -> LOG.debug("{}", file, problem));
        for (TracedProcess process : all) {
            if (!process.alive()) {
                ended.put(process.file(), communicators(process));
            }
        }
        all.add(self);
        all.sort(TraceReader.ORDER);
        return all;
    }

    /**
     * Lists the directory if the directory, or the set of this process's communicators, has changed. Hundreds of dead
     * processes may have left traces in the directory. If an idle process listed or read these traces repeatedly, it
     * would use a percent of a core, mostly for the JIT compiler.
     */
    private void list(Set<Long> mine) throws IOException {
        long now = System.currentTimeMillis();
        long modified = Files.getLastModifiedTime(directory).toMillis();
        if (modified != listed || !mine.equals(listedFor)) {
            files = TraceReader.list(directory);
            files.removeIf(file -> file.equals(own) || isOld(file));
            ended.keySet().retainAll(Set.copyOf(files));
            // The next call lists the directory again in two cases. First, its date is recent, and a further file in
            // the same tick of the file system's clock would not change this date. Second, the communicators have
            // changed, and a peer may join a new communicator later than this process.
            listed = now - modified < CLOCK_MILLIS || !mine.equals(listedFor) ? UNLISTED : modified;
            listedFor = mine;
        }
    }

    private boolean isOld(Path file) {
        try {
            return Files.getLastModifiedTime(file).toMillis() < firstMillis;
        } catch (IOException unclear) {
            return false;
        }
    }

    /** @param theirs communicators of an ended process; null if the process is not known to have ended */
    private static boolean mayConcern(@Nullable Set<Long> theirs, Set<Long> mine) {
        return theirs == null || theirs.stream().anyMatch(mine::contains);
    }

    private static Set<Long> communicators(TracedProcess process) {
        Set<Long> all = new HashSet<>();
        process.communicators().forEach(each -> all.add(each.hash()));
        process.connections().forEach(each -> all.add(each.identity().communicator()));
        process.gin().forEach(each -> all.add(each.communicator()));
        // A group that is being joined has no number, so its rendezvous is hashed. Equal hashes only cause an extra
        // reading.
        process.joins()
                .stream()
                .filter(each -> each.size() != 0)
                .forEach(each -> all.add((long) each.where().hashCode()));
        return all;
    }
}
