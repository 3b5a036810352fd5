package org.millrace.trace;

import java.io.IOException;
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
 * Reads the traces of a directory repeatedly. The trace of an ended process does not change. It is read again only if
 * the ended process had a communicator in common with this process. Used by one thread at a time.
 */
final class GroupReading implements Hang.Reading {

    private static final Logger LOG = LogManager.getLogger(GroupReading.class);

    private final Path directory;
    private final Path own;
    /** Communicators of each ended process, by its trace. */
    private final Map<Path, Set<Long>> ended = new HashMap<>();

    /** @param own trace of this process */
    GroupReading(Path directory, Path own) {
        this.directory = directory;
        this.own = own;
    }

    @Override
    public List<TracedProcess> read() throws IOException {
        Set<Long> mine = communicators(TraceReader.read(own));
        Set<Path> seen = new HashSet<>();
        List<TracedProcess> all =
                TraceReader.readAll(directory, file -> seen.add(file) && mayConcern(ended.get(file), mine),
                        (file, problem) -> LOG.debug("{}", file, problem));
        ended.keySet().retainAll(seen);
        for (TracedProcess process : all) {
            if (!process.alive()) {
                ended.put(process.file(), communicators(process));
            }
        }
        return all;
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
        return all;
    }
}
