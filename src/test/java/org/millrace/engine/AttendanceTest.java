package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.CommunicatorListener;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.GroupFailure;
import org.millrace.bootstrap.JoinOptions;
import org.millrace.bootstrap.LaunchCounts;
import org.millrace.config.Configuration;

/** Verdicts about a kernel of rank 0. Rank 1 has not started the matching kernel. */
class AttendanceTest {

    @TempDir
    Path directory;

    @Test
    void theNoticeOfAStallHasALimitOfLessThanASecond() throws Exception {
        LinkedBlockingQueue<String> notices = new LinkedBlockingQueue<>();
        JoinOptions options = JoinOptions.of(Configuration.load(EngineGroup.settings()), new CommunicatorListener() {

            @Override
            public void stalled(String what) {
                notices.add(what);
            }
        });
        EngineGroup.call(2, rank -> () -> {
            try (ControlPlane control = ControlPlane.join("file:" + directory.resolve("group"), rank, 2, options)) {
                if (rank == 0) {
                    Attendance attendance =
                            new Attendance(control, new LaunchCounts(control, new GroupFailure(control)),
                                    Duration.ofMillis(1), Duration.ofMillis(999));
                    Attendance.Meeting kernel = sink -> sink.collective(0);
                    assertNull(attendance.judge(kernel, System.nanoTime() - 2_000_000, () -> "data"));
                    String notice = notices.poll(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
                    assertTrue(notice.contains("the limit is 999ms (MILLRACE_LATE_DEADLINE)"), notice);
                }
                control.barrier();
            }
            return null;
        }).forEach(failure -> assertNull(failure, () -> String.valueOf(failure)));
    }
}
