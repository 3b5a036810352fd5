package org.millrace.device.stream;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A device's streams that are open. The device's thread runs what they hold; any thread opens and closes some. */
final class OpenStreams {

    /** Copied when one comes or goes. */
    private volatile EmulatedStream[] all = {};

    synchronized void add(EmulatedStream stream) {
        List<EmulatedStream> more = new ArrayList<>(List.of(all));
        more.add(stream);
        all = more.toArray(EmulatedStream[]::new);
    }

    synchronized void remove(EmulatedStream stream) {
        List<EmulatedStream> fewer = new ArrayList<>(List.of(all));
        fewer.remove(stream);
        all = fewer.toArray(EmulatedStream[]::new);
    }

    boolean contains(EmulatedStream stream) {
        for (EmulatedStream each : all) {
            if (each == stream) {
                return true;
            }
        }
        return false;
    }

    /** Runs the oldest task of each on, by the device's thread; returns how much was done. */
    int progress() {
        int work = 0;
        for (EmulatedStream stream : all) {
            work += stream.tasks().progress();
        }
        return work;
    }

    /**
     * Runs what they hold now as far as it waits for nothing, and no more: a function may enqueue itself again and
     * again.
     */
    void finish() {
        EmulatedStream[] now = all;
        long[] targets = Arrays.stream(now).mapToLong(each -> each.tasks().enqueued()).toArray();
        int work;
        do {
            work = 0;
            for (int i = 0; i < now.length; i++) {
                work += now[i].tasks().completed() < targets[i] ? now[i].tasks().progress() : 0;
            }
        } while (work > 0);
    }

    /** Makes what they hold fail, as nobody runs it any more. */
    void skipAll() {
        for (EmulatedStream stream : all) {
            stream.tasks().skipAll();
        }
    }

    /** Makes what they hold fail, and those who wait for it hear why. */
    void fail(Throwable failure) {
        for (EmulatedStream stream : all) {
            stream.tasks().fail(failure);
        }
    }
}
