package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.Connected;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.Warnings;
import org.millrace.trace.Hang;
import org.millrace.trace.OwnTrace;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.Verdict;

/**
 * Outages of connections appear in every kind of report. An outage lasts from the loss of the last stream until the
 * connection has a new stream.
 */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class OutageTest {

    @TempDir
    Path directory;

    private List<TracedProcess> traces() throws IOException {
        return TraceReader.readAll(directory, (file, problem) -> {})
                .stream()
                .filter(each -> each.identity().pid() == ProcessIdentity.CURRENT.pid())
                .toList();
    }

    private boolean isCut() throws IOException {
        return traces().stream().anyMatch(TracedProcess::isCut);
    }

    private List<String> why() throws IOException {
        return Hang.verdicts(this::traces, Duration.ZERO)
                .stream()
                .map(Verdict::sentence)
                .filter(sentence -> sentence.contains(" is cut: "))
                .toList();
    }

    @Test
    void itsBeginningAndItsEndAreTold() throws IOException {
        Path events = directory.resolve("recording.jfr");
        try (OwnTrace _ = new OwnTrace(directory);
                SocketNetwork network = new SocketNetwork(SocketOptions.defaults().withAddresses("lo", null, null));
                Connected ends = Connected.make(network, network);
                Warnings warnings = new Warnings(Reconnector.Outage.class.getCanonicalName());
                Recording recording = new Recording()) {
            recording.enable("millrace.Outage");
            recording.start();
            assertFalse(isCut());
            ((FrameSender.Railed) ends.sender()).cutRail(0);
            ends.sender().progress();
            assertTrue(isCut());
            assertEquals(1, warnings.all().size());
            assertTrue(warnings.await("lost rail 0").contains("waits until it is restored"));
            assertEquals(1, why().size());
            String why = why().getFirst();
            String self = ProcessIdentity.CURRENT.pid() + " on 127.0.0.1";
            assertTrue(
                    why.startsWith("The way from ") && why.contains(" to pid " + self + " is cut: its connection lost ")
                            && why.contains("waits until it is restored. Nothing has come for "),
                    why);
            assertTrue(ends.sender().offer(new FrameHeader(), null, 0));
            ends.nextHeader();
            warnings.await("is restored after"); // the loss may appear in the reports after the new stream exists
            assertFalse(isCut());
            assertEquals(List.of(), why());
            // an end that is closed during an outage is not reported any longer
            ((FrameSender.Railed) ends.sender()).cutRail(0);
            ends.sender().progress();
            assertTrue(isCut());
            ends.sender().abort();
            ends.receiver().close();
            assertFalse(isCut());
            recording.stop();
            recording.dump(events);
        }
        List<String> said = RecordingFile.readAllEvents(events)
                .stream()
                // networks of other tests may record outages too
                .filter(event -> event.getEventType().getName().equals("millrace.Outage"))
                .map(event -> event.getString("what"))
                .toList();
        assertTrue(said.stream().anyMatch(text -> text.contains("its last; waits until it is restored"))
                && said.stream().anyMatch(text -> text.contains("is restored after")), said.toString());
    }
}
