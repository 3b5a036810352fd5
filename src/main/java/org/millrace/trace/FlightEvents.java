package org.millrace.trace;

import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.EventType;
import jdk.jfr.FlightRecorder;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;
import org.millrace.trace.TraceLayout.ConnectionFields;

/**
 * Events of JDK Flight Recorder, without stack traces. Nothing is allocated while the events are not recorded.
 * {@link #isRecording} is called before the other methods, for two reasons. First, the code must also run on a Java
 * without Flight Recorder, such as a reduced Java for the plugin. Second, the event classes must not be loaded before a
 * recording was started. The JDK would read their annotations, which takes a tenth of a second while the first
 * connection is made.
 */
final class FlightEvents {

    private static final boolean PRESENT = ModuleLayer.boot().findModule("jdk.jfr").isPresent();

    private FlightEvents() {}

    /** Returns whether a recording of JDK Flight Recorder was started in this process, now or earlier. */
    static boolean isRecording() {
        return PRESENT && FlightRecorder.isInitialized();
    }

    static void operation(long communicator, int rank, CommunicatorTrace.TraceName name, long sequence, long bytes) {
        if (Types.OPERATION.isEnabled()) {
            OperationEvent event = new OperationEvent();
            event.communicator = Long.toHexString(communicator);
            event.rank = rank;
            event.operation = name.toString();
            event.sequence = sequence;
            event.bytes = bytes;
            event.commit();
        }
    }

    static void connection(ConnectionIdentity identity) {
        if (Types.CONNECTION.isEnabled()) {
            ConnectionEvent event = new ConnectionEvent();
            event.communicator = Long.toHexString(identity.communicator());
            event.connection = identity.name();
            event.peer = identity.peerText();
            event.channel = identity.channel();
            event.direction = identity.direction().label();
            event.network = identity.network();
            event.commit();
        }
    }

    static void loss(String why) {
        if (Types.LOSS.isEnabled()) {
            LossEvent event = new LossEvent();
            event.reason = why;
            event.commit();
        }
    }

    static void outage(String connection, String what, long nanos) {
        if (Types.OUTAGE.isEnabled()) {
            OutageEvent event = new OutageEvent();
            event.connection = connection;
            event.what = what;
            event.lasted = nanos;
            event.commit();
        }
    }

    static boolean recordsStalls() {
        return Types.STALL.isEnabled();
    }

    /** @param block address of the connection's block in the trace */
    static void stall(long block, long nanos) {
        StallEvent event = new StallEvent();
        event.connection = TraceMemory.text(block, ConnectionFields.NAME);
        event.taken = TraceMemory.get(block + ConnectionFields.TAKEN_OFFSET);
        event.done = TraceMemory.get(block + ConnectionFields.DONE_OFFSET);
        event.blocked = TraceMemory.get(block + ConnectionFields.BLOCKED_OFFSET) - event.taken >= 0;
        event.stands = nanos;
        event.commit();
    }

    static void flush(int context, long flushes) {
        if (Types.FLUSH.isEnabled()) {
            GinFlushEvent event = new GinFlushEvent();
            event.context = context;
            event.flushes = flushes;
            event.commit();
        }
    }

    private static final class Types {
        static final EventType OPERATION = EventType.getEventType(OperationEvent.class);
        static final EventType CONNECTION = EventType.getEventType(ConnectionEvent.class);
        static final EventType LOSS = EventType.getEventType(LossEvent.class);
        static final EventType OUTAGE = EventType.getEventType(OutageEvent.class);
        static final EventType STALL = EventType.getEventType(StallEvent.class);
        static final EventType FLUSH = EventType.getEventType(GinFlushEvent.class);

        private Types() {}
    }

    @Name("millrace.Operation")
    @Label("Operation")
    @Description("An operation was enqueued")
    @Category("Millrace")
    @StackTrace(false)
    static final class OperationEvent extends Event {
        @Label("Communicator")
        String communicator;
        @Label("Rank")
        int rank;
        @Label("Operation")
        String operation;
        @Label("Number in the Communicator")
        long sequence;
        @Label("Bytes")
        @DataAmount
        long bytes;
    }

    @Name("millrace.Connection")
    @Label("Connection")
    @Description("A connection was made")
    @Category("Millrace")
    @StackTrace(false)
    static final class ConnectionEvent extends Event {
        @Label("Communicator")
        String communicator;
        @Label("Connection")
        String connection;
        @Label("Peer")
        String peer;
        @Label("Channel")
        int channel;
        @Label("Direction")
        String direction;
        @Label("Network")
        String network;
    }

    @Name("millrace.Loss")
    @Label("Loss")
    @Description("A connection has failed")
    @Category("Millrace")
    @StackTrace(false)
    static final class LossEvent extends Event {
        @Label("Reason")
        String reason;
    }

    @Name("millrace.Outage")
    @Label("Outage")
    @Description("A connection has lost its last stream, or has one again")
    @Category("Millrace")
    @StackTrace(false)
    static final class OutageEvent extends Event {
        @Label("Connection")
        String connection;
        @Label("What Happened")
        String what;
        @Label("Lasted")
        @Timespan
        long lasted;
    }

    @Name("millrace.Stall")
    @Label("Stall")
    @Description("A connection with posted data made no progress for a second")
    @Category("Millrace")
    @StackTrace(false)
    static final class StallEvent extends Event {
        @Label("Connection")
        String connection;
        @Label("First Step Not Taken")
        long taken;
        @Label("First Step Not Done")
        long done;
        @Label("Blocked")
        @Description("A step is there that cannot be taken")
        boolean blocked;
        @Label("Time Without Progress")
        @Timespan
        long stands;
    }

    @Name("millrace.GinFlush")
    @Label("GIN Flush")
    @Description("Kernels asked for flushes")
    @Category("Millrace")
    @StackTrace(false)
    static final class GinFlushEvent extends Event {
        @Label("Context")
        int context;
        @Label("Flushes")
        @Description("Since the event before, or in the tenth of a second before this one")
        long flushes;
    }
}
