package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.millrace.Event;
import org.millrace.Plan;

/** One thread ends a capture while another thread uses the capture's streams. */
class CaptureEndTest {

    private static final int ROUNDS = 500;
    private static final int CALLS = 20;

    private interface Body {
        void run() throws Exception;
    }

    /** Runs two bodies at once, repeatedly. Neither body may wait forever. */
    private static void together(Body prepare, Body one, Body other, Body check) throws Exception {
        CyclicBarrier start = new CyclicBarrier(2);
        // The executor is not closed, because its close would wait for threads that may be deadlocked.
        ExecutorService threads =
                Executors.newThreadPerTaskExecutor(Thread.ofPlatform().daemon().name("test-", 0).factory());
        for (int round = 0; round < ROUNDS; round++) {
            prepare.run();
            Future<Void> first = threads.submit(() -> {
                start.await();
                one.run();
                return null;
            });
            Future<Void> second = threads.submit(() -> {
                start.await();
                other.run();
                return null;
            });
            first.get(30, TimeUnit.SECONDS);
            second.get(30, TimeUnit.SECONDS);
            check.run();
        }
        threads.shutdown();
    }

    @Test
    void aStreamThatWaitsForItsEventJoinsTheCaptureOrIsRefused() throws Exception {
        EmulatedDevice device = new EmulatedDevice(0);
        EmulatedStream origin = device.newStream();
        EmulatedStream side = device.newStream();
        Event event = device.newEvent();
        together(() -> {
            origin.beginCapture();
            origin.record(event);
            side.waitFor(event);
        }, () -> origin.endCapture().close(), () -> {
            try {
                for (int i = 0; i < CALLS; i++) {
                    side.waitFor(event);
                }
            } catch (IllegalStateException over) {
                // the capture has ended, so no stream can wait for an event of the capture
            }
        }, () -> assertFalse(origin.isCapturing() || side.isCapturing()));
    }

    @Test
    void noOperationIsLostWhileTheCaptureEnds() throws Exception {
        EmulatedDevice device = new EmulatedDevice(0);
        EmulatedStream stream = device.newStream();
        AtomicInteger called = new AtomicInteger();
        Plan[] plan = new Plan[1];
        together(stream::beginCapture, () -> plan[0] = stream.endCapture(), () -> {
            for (int i = 0; i < CALLS; i++) {
                stream.call(called::incrementAndGet);
            }
        }, () -> {
            plan[0].launch(stream);
            while (!stream.tasks().isIdle()) {
                device.doWork();
            }
            plan[0].close();
            assertEquals(CALLS, called.getAndSet(0));
        });
    }
}
