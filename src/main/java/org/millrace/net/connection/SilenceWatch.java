package org.millrace.net.connection;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.ProcessTrace;

/**
 * Checks once a second whether links of this process's TCP streams are silent. Writes the silent links to the trace.
 * Runs on the trace's thread. A link is a pair of addresses, with all streams between them.
 */
public final class SilenceWatch {

    private static final Logger LOG = LogManager.getLogger(SilenceWatch.class);
    /**
     * Time during which peers receive reports about a silent link after the streams of the link are closed. The reports
     * stop earlier if a new stream is connected over the link. The limit matters only if the owners of the closed
     * streams continue without a new stream.
     */
    private static final long TOLD_NANOS = Duration.ofMinutes(2).toNanos();
    /**
     * Maximum age of another process's report that is written to the trace. An older report has been written already,
     * or was ignored because this process itself had lost contact with one of the two hosts. An ignored report stays
     * ignored when the contact returns.
     */
    private static final long NEWS_NANOS = Duration.ofSeconds(8).toNanos();

    private final ProcessTrace trace;
    private final TcpInfo info = new TcpInfo(Arena.global());
    private final SilenceClock clock = new SilenceClock(System::nanoTime, SilenceClock::runnableNanos);
    private final LongLines longLines = new LongLines(this::say);
    private final Map<Link, Silent> silent = new HashMap<>();
    /** Trace entries of silent links between other hosts, which peers have reported. */
    private final Map<Link, ProcessTrace.SilenceTrace> reported = new HashMap<>();
    /** Time of the latest check in which a link of this process was silent, by {@link System#nanoTime}. */
    private long told;

    private record Link(InetAddress local, InetAddress remote) {

        static Link of(TcpStream stream) {
            return new Link(stream.local.getAddress(), stream.remote.getAddress());
        }
    }

    /**
     * A silent link, with its trace entry and the streams that were silent. Only input on these streams shows that the
     * silence has ended.
     */
    private record Silent(ProcessTrace.SilenceTrace trace, Set<TcpStream> streams) {
    }

    private SilenceWatch(ProcessTrace trace) {
        this.trace = trace;
    }

    /** Starts the watch. The watch runs as long as the trace is open. */
    public static void start(ProcessTrace trace) {
        if (TcpInfo.isKnown()) {
            trace.watch(new SilenceWatch(trace)::glance);
        }
    }

    /** Checks the links if a second has passed. Called ten times a second, on one thread. */
    private void glance() {
        long nanos = clock.due();
        if (nanos > 0) {
            look(nanos);
        }
    }

    private void look(long nanos) {
        List<TcpStream> open = TcpStreams.open();
        if (!open.isEmpty() || !silent.isEmpty()) {
            List<TcpStream> updated = update(open, nanos);
            write(updated);
            tellPeers(updated);
            longLines.look(updated);
        }
        writeReported(open);
    }

    private void say(String text) {
        LOG.warn(text);
        trace.message(text);
    }

    private void write(List<TcpStream> open) {
        Map<Link, Integer> counts = new HashMap<>();
        open.forEach(stream -> counts.merge(Link.of(stream), 1, Integer::sum));
        open.stream()
                .filter(TcpStream::isSilent)
                .sorted(Comparator.comparingLong(TcpStream::silentNanos).reversed())
                .forEach(this::add);
        silent.entrySet().removeIf(each -> {
            Silent link = each.getValue();
            link.streams.retainAll(open);
            if (counts.containsKey(each.getKey())) {
                link.trace.streams(counts.get(each.getKey()));
            }
            if (link.streams.isEmpty()) {
                link.trace.lost();
            } else if (!link.streams.stream().allMatch(TcpStream::isSilent)) {
                link.trace.heard();
                trace.message("the network to " + TcpStreams.words(each.getKey().remote) + " is heard again");
            } else {
                return false;
            }
            return true;
        });
    }

    private void tellPeers(List<TcpStream> open) {
        SilentLink before = TcpStreams.silent();
        if (!silent.isEmpty()) {
            told = System.nanoTime();
            if (before == null || !silent.containsKey(new Link(before.local(), before.remote()))) {
                Link link = silent.keySet().iterator().next();
                TcpStreams.silent(new SilentLink(link.local, link.remote, ProcessIdentity.HOST));
            }
        } else if (before != null && (System.nanoTime() - told > TOLD_NANOS || open.stream()
                .anyMatch(stream -> Link.of(stream).equals(new Link(before.local(), before.remote()))))) {
            TcpStreams.silent(null);
        }
    }

    /**
     * Writes the silent links between other hosts to the trace. Both hosts of a silent link may report the link, over
     * several connections. A report is ignored if this process has itself lost contact with one of the two hosts. This
     * process detects such a loss at about the time when the report arrives.
     */
    private void writeReported(List<TcpStream> open) {
        Collection<TcpStreams.Report> reports = TcpStreams.reports();
        if (reports.isEmpty() && reported.isEmpty()) {
            return;
        }
        for (TcpStreams.Report report : reports) {
            SilentLink link = report.link();
            if (System.nanoTime() - report.time() < NEWS_NANOS && isHeard(link.local(), open)
                    && isHeard(link.remote(), open)
                    && reported.keySet().stream().noneMatch(known -> link.isSame(known.local, known.remote))) {
                ProcessTrace.SilenceTrace written =
                        trace.silence(report.time(), 0, link.host() + " (" + link.local().getHostAddress() + ")",
                                TcpStreams.words(link.remote()), report.peer());
                if (written != null) {
                    reported.put(new Link(link.local(), link.remote()), written);
                }
            }
        }
        reported.entrySet().removeIf(each -> {
            boolean ends = reports.stream()
                    .noneMatch(report -> report.link().isSame(each.getKey().local, each.getKey().remote));
            if (ends) {
                each.getValue().heard();
            }
            return ends;
        });
    }

    private boolean isHeard(InetAddress host, List<TcpStream> open) {
        SilentLink own = TcpStreams.silent();
        return (own == null || !own.remote().equals(host))
                && open.stream().noneMatch(stream -> stream.remote.getAddress().equals(host) && !stream.isHeard());
    }

    private void add(TcpStream stream) {
        Link link = Link.of(stream);
        Silent known = silent.get(link);
        if (known == null) {
            ProcessTrace.SilenceTrace written = trace.silence(System.nanoTime() - stream.silentNanos(), 1,
                    local(link.local), TcpStreams.words(link.remote), stream.peer);
            if (written == null) {
                return;
            }
            known = new Silent(written, new HashSet<>());
            silent.put(link, known);
        }
        known.streams.add(stream);
    }

    /**
     * Updates the streams with the operating system's TCP statistics. Returns the streams that were still open after
     * their update. The descriptor of a closed stream may already belong to another file, so information about that
     * descriptor is not used.
     */
    private List<TcpStream> update(List<TcpStream> open, long nanos) {
        List<TcpStream> unknown = open.stream().filter(stream -> stream.descriptor < 0).toList();
        try {
            if (!unknown.isEmpty()) {
                info.find(unknown);
            }
        } catch (IOException e) {
            LOG.debug("cannot look through this process's descriptors", e);
        }
        List<TcpStream> updated = new ArrayList<>(open.size());
        for (TcpStream stream : open) {
            if (stream.descriptor >= 0 && info.read(stream.descriptor) && stream.isOpen()) {
                stream.update(info, nanos);
                updated.add(stream);
            }
        }
        return updated;
    }

    private static String local(InetAddress address) {
        try {
            NetworkInterface at = NetworkInterface.getByInetAddress(address);
            return address.getHostAddress() + (at == null ? "" : ", " + at.getName());
        } catch (IOException e) {
            return address.getHostAddress();
        }
    }
}
