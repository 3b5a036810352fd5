package org.millrace.plugin.path;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Properties of network interfaces that the plugin reports to NCCL for its topology. */
class NetDeviceTest {

    @TempDir
    Path machine;

    private Path card(String name) throws Exception {
        return Files.createDirectories(machine.resolve("pci0000:00").resolve(name));
    }

    private Path face(String name, String speed, Path card) throws Exception {
        Path directory = Files.createDirectories(machine.resolve("net").resolve(name));
        Files.writeString(directory.resolve("speed"), speed + "\n");
        if (card != null) {
            Files.createSymbolicLink(directory.resolve("device"), directory.relativize(card));
        }
        return directory.getParent();
    }

    @Test
    void aCardsSpeedAndPlaceAreTold() throws Exception {
        Path card = card("0000:00:05.0");
        NetDevice device = NetDevice.of(face("eth0", "200000", card), List.of("eth0"));
        assertEquals("eth0", device.toString());
        assertEquals(200_000, device.speedMbps());
        assertEquals(card.toRealPath().toString(), device.pciPath().getString(0));
    }

    @Test
    void severalInterfacesAreAsFastAsAllAndWhereTheFirstCardIs() throws Exception {
        Path second = card("0000:00:06.0");
        face("bond0", "100000", null);
        NetDevice device = NetDevice.of(face("eth1", "25000", second), List.of("bond0", "eth1"));
        assertEquals("bond0+eth1", device.toString());
        assertEquals(125_000, device.speedMbps());
        assertEquals(second.toRealPath().toString(), device.pciPath().getString(0));
    }

    @Test
    void whatTellsNoSpeedIsTakenAsNcclTakesIt() throws Exception {
        NetDevice device = NetDevice.of(face("virt0", "-1", null), List.of("virt0", "none"));
        assertEquals(20_000, device.speedMbps());
        assertEquals(MemorySegment.NULL, device.pciPath());
    }

    @Test
    void twoAddressesOfAnInterfaceAreOneDevice() {
        NetDevice device =
                NetDevice.of(List.of(InetAddress.ofLiteral("127.0.0.1"), InetAddress.ofLiteral("127.0.0.2")));
        assertEquals("lo", device.toString());
        assertEquals(10_000, device.speedMbps());
        assertEquals(MemorySegment.NULL, device.pciPath());
    }
}
