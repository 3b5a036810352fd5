package org.millrace.device.stream;

import java.util.ArrayList;
import java.util.List;

/** A device's streams that are open. The device's thread goes through them; any thread opens and closes some. */
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

    /** Not to be changed. */
    EmulatedStream[] all() {
        return all;
    }
}
