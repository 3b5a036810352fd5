package org.millrace.trace.reader;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.List;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.MBeanServerFactory;
import javax.management.ObjectName;
import org.apache.logging.log4j.LogManager;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.TraceMXBean;
import org.millrace.trace.reader.TracedCommunicator.Operation;

/**
 * This process's trace in JMX. It is registered once somebody uses JMX in this process, be it from outside: until then
 * nothing of it is loaded, since the platform's server alone takes a JVM's start some 50 ms.
 */
public final class TraceBean implements TraceMXBean {

    /** Looks at the trace's thread comes ten times a second. */
    private static final int LOOKS = 10;

    private final Path file;

    private TraceBean(Path file) {
        this.file = file;
    }

    /** Registers it as soon as there is a server. */
    public static void whenWanted(ProcessTrace trace) {
        if (ModuleLayer.boot().findModule("java.management").isPresent()) {
            trace.watch(new Registration(trace));
        }
    }

    private static final class Registration implements Runnable {

        private final ProcessTrace trace;
        private int looks;

        Registration(ProcessTrace trace) {
            this.trace = trace;
        }

        @Override
        public void run() {
            if (looks++ % LOOKS == 0 && !MBeanServerFactory.findMBeanServer(null).isEmpty()) {
                trace.unwatch(this);
                register(trace.path());
            }
        }
    }

    private static void register(Path file) {
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            ObjectName name = new ObjectName(NAME);
            if (!server.isRegistered(name)) {
                server.registerMBean(new TraceBean(file), name);
            }
        } catch (JMException e) {
            LogManager.getLogger(TraceBean.class).warn("{} cannot be registered", NAME, e);
        }
    }

    @Override
    public String getFile() {
        return file.toString();
    }

    @Override
    public List<Connection> getConnections() throws IOException {
        return TracedLink.of(List.of(TraceReader.read(file))).stream().map(TraceBean::connection).toList();
    }

    private static Connection connection(TracedLink link) {
        TracedConnection one = link.connection();
        return new Connection(link.rank(), link.peer(), link.channel(), one.identity().direction().label(),
                one.identity().network(), one.state().label(), one.frames(), one.bytes(), one.taken(), one.done(),
                link.waitsFor().label(), link.standsSeconds(), one.kernelNanos() / 1e9, one.wireNanos() / 1e9,
                one.peerNanos() / 1e9);
    }

    @Override
    public List<Agent> getAgents() throws IOException {
        return TraceReader.read(file)
                .agents()
                .stream()
                .map(agent -> new Agent(agent.name(), agent.passes(), agent.busy(), agent.cpuNanos() / 1e9))
                .toList();
    }

    @Override
    public List<Group> getCommunicators() throws IOException {
        return TraceReader.read(file)
                .communicators()
                .stream()
                .filter(each -> each.state() != TracedState.CLOSED)
                .map(each -> new Group(Long.toHexString(each.hash()), each.rank(), each.size(), each.state().label(),
                        each.enqueued(), each.begun(), each.ended(),
                        each.last().isEmpty() ? "" : words(each.last().getLast())))
                .toList();
    }

    private static String words(Operation operation) {
        return operation.name() + (operation.peer() >= 0 ? " with rank " + operation.peer()
                : operation.sequence() >= 0 ? " #" + operation.sequence() : "");
    }

    @Override
    public List<String> getMessages() throws IOException {
        return TraceReader.read(file).messages().stream().map(TracedProcess.Message::text).toList();
    }
}
