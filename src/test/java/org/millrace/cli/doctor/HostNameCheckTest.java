package org.millrace.cli.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.namespace.TestHost;

/** Messages of doctor about a host's addresses and name. Doctor reports such problems before any rank starts. */
@Timeout(120)
@Tag("root")
@Tag("slow")
class HostNameCheckTest {

    private TestHost host;

    @BeforeEach
    void start() throws Exception {
        host = TestHost.named("node0");
    }

    @AfterEach
    void end() throws Exception {
        if (host != null) { // the host is null if namespaces are not available
            host.close();
        }
    }

    private void assertSays(String rails, String name) throws Exception {
        Process program = host.java(Checks.class);
        String said = new String(program.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        String[] lines = said.split("\n");
        assertEquals(2, lines.length, said);
        assertTrue(lines[0].startsWith(rails), said);
        assertTrue(lines[1].startsWith(name), said);
    }

    @Test
    void eachWrongWayHasItsVerdict() throws Exception {
        assertSays("ok 1 over TCP between hosts: 127.0.0.1 of lo, as there is no other: other hosts cannot reach it",
                "not found an address of this host's name, node0 [tcp:node0:PORT and MASTER_ADDR=node0 lead nowhere");
        host.run("""
                ip link add eth0 type veth peer name peer0
                ip link set peer0 up
                ip link set eth0 up
                ip addr add 10.0.0.1/24 dev eth0""");
        String rails = "ok 1 over TCP between hosts: 10.0.0.1 of eth0, the first that is not docker, lo or virbr";
        host.hosts("127.0.1.1 node0\n");
        assertSays(rails, "ok node0 is 127.0.1.1 here, where other hosts do not reach it: taken for 10.0.0.1 of eth0");
        host.hosts("10.0.0.9 node0\n");
        assertSays(rails, "UNUSABLE node0 is 10.0.0.9, which no interface here has [rank 0 cannot listen at tcp:node0");
        host.hosts("10.0.0.1 node0\n");
        assertSays(rails, "ok node0 is 10.0.0.1");
        host.run("ip link set lo down");
        assertSays(rails + " [loopback is down", "ok node0 is 10.0.0.1");
        host.run("ip link set eth0 down");
        assertSays("UNUSABLE no network interface is usable; running are: none", "UNUSABLE node0 is 10.0.0.1, which");
    }

    /** Prints the results of two checks, one line each: first the host's addresses, then the host's name. */
    static final class Checks {

        private Checks() {}

        public static void main(String[] arguments) {
            for (CheckResult each : new CheckResult[] {MachineChecks.rails(Map.of()),
                    MachineChecks.hostName("node0", Map.of())}) {
                System.out.println(each.state() + " " + each.summary() + " " + each.advice());
            }
        }
    }
}
