package org.millrace.trace;

import java.io.IOException;
import java.util.List;

/**
 * What this process has written down, for JMX: {@value #NAME}. Each attribute is read anew. Times are seconds, counts
 * begin when something was opened.
 */
public interface TraceMXBean {

    /** Under which it is registered. */
    String NAME = "org.millrace:type=Trace";

    /**
     * A connection.
     *
     * @param rank          of this end; -1 if not known
     * @param peer          rank of the other end; -1 if not known
     * @param channel       number of the channel, or the how manieth connection between the two it is
     * @param direction     {@code send}, {@code receive} or {@code copy}
     * @param network       what carries its data
     * @param state         {@code open} or {@code failed}
     * @param frames        how many were taken
     * @param bytes         of their payloads
     * @param stepTaken     first step that was not taken
     * @param stepDone      first step that is not complete
     * @param waitsFor      {@code kernel}, {@code wire} or {@code peer}
     * @param standsSeconds for how long nothing has happened
     * @param kernelSeconds for how long it waited for the kernel
     * @param wireSeconds   for how long it waited for the network
     * @param peerSeconds   for how long it waited for the peer
     */
    record Connection(int rank, int peer, int channel, String direction, String network, String state, long frames,
            long bytes, long stepTaken, long stepDone, String waitsFor, double standsSeconds, double kernelSeconds,
            double wireSeconds, double peerSeconds) {
    }

    /**
     * A thread that serves connections.
     *
     * @param name       of the agent
     * @param passes     how many
     * @param busy       those of them in which something was done
     * @param cpuSeconds for how long the thread had a core
     */
    record Agent(String name, long passes, long busy, double cpuSeconds) {
    }

    /**
     * A communicator.
     *
     * @param hash       what all its ranks have in common
     * @param rank       of this process in it
     * @param size       number of ranks
     * @param state      {@code open} or {@code failed}
     * @param operations how many were enqueued
     * @param begun      how many of their kernels have begun; 0 if nobody tells
     * @param ended      how many of their kernels have ended; 0 if nobody tells
     * @param last       the last that was enqueued, in words; empty if none was
     */
    record Group(String hash, int rank, int size, String state, long operations, long begun, long ended, String last) {
    }

    /** The file that all of this is in. */
    String getFile();

    /** Those that are open, or have failed. */
    List<Connection> getConnections() throws IOException;

    /** Threads that serve connections. */
    List<Agent> getAgents() throws IOException;

    /** Communicators that are open, or have failed. */
    List<Group> getCommunicators() throws IOException;

    /** Failures and stalls, oldest first: the last 16. */
    List<String> getMessages() throws IOException;
}
