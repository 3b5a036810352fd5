package org.millrace.plugin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.plugin.host.CallingLibrary;

class PluginConfigurationTest {

    private static PluginConfiguration read(Map<String, String> environment) {
        return PluginConfiguration.of(CallingLibrary.UNTOLD, Configuration.ofPlugin(environment::get));
    }

    @Test
    void nothingSetMeansTakeoverAndSetsWhatItNeeds() {
        PluginConfiguration settings = read(Map.of());
        assertTrue(settings.takeover());
        assertNull(settings.refusal());
        assertEquals(Map.of("NCCL_NET_SHARED_BUFFERS", "0", "NCCL_PXN_DISABLE", "1", "NCCL_MIN_NCHANNELS", "8",
                "NCCL_NCHANNELS_PER_NET_PEER", "4", "NCCL_BUFFSIZE", "2097152"), settings.toSet());
    }

    @ParameterizedTest
    @CsvSource({"WORLD_SIZE, 16, 4", "WORLD_SIZE, 17, ", "SLURM_NTASKS, 64, ", "NCCL_NCHANNELS_PER_NET_PEER, 1, ",
            "NCCL_MIN_NCHANNELS, 2, "})
    void peersHaveMoreChannelsWhileTheyAreFewAndTheUserDoesNotSay(String name, String value, String expected) {
        assertEquals(expected, read(Map.of(name, value)).toSet().get("NCCL_NCHANNELS_PER_NET_PEER"));
    }

    @Test
    void whatTheUserHasSetRightIsNotSetAgain() {
        PluginConfiguration settings = read(Map.of("NCCL_NET_SHARED_BUFFERS", "0x0", "NCCL_PXN_DISABLE", " 1",
                "NCCL_GDRCOPY_ENABLE", "0", "NCCL_MAX_NCHANNELS", "2", "NCCL_BUFFSIZE", "65536"));
        assertTrue(settings.takeover());
        assertEquals(Map.of(), settings.toSet());
    }

    @ParameterizedTest
    @CsvSource({"NCCL_NET_SHARED_BUFFERS, 1", "NCCL_NET_SHARED_BUFFERS, -2", "NCCL_PXN_DISABLE, 0",
            "NCCL_PXN_DISABLE, true", "NCCL_GDRCOPY_ENABLE, 1"})
    void aSettingOfTheUsersThatForbidsItIsNamedInTheRefusal(String name, String value) {
        PluginConfiguration settings = read(Map.of(name, value));
        assertFalse(settings.takeover());
        assertEquals(Map.of("NCCL_LL128_C2C", "0"), settings.toSet());
        assertTrue(settings.refusal().contains(name + "=" + value + " ("), settings.refusal());
        ConfigurationException refused =
                assertThrows(ConfigurationException.class, () -> read(Map.of(name, value, "MILLRACE_TAKEOVER", "1")));
        assertTrue(refused.getMessage().contains(name + "=" + value), refused.getMessage());
    }

    @Test
    void slotsInTheGpusMemory() {
        PluginConfiguration settings = read(Map.of("MILLRACE_DEVICE_SLOTS", "1", "NCCL_NET_GDR_LEVEL", "PHB"));
        assertTrue(settings.deviceSlots());
        assertEquals(
                Map.of("NCCL_NET_SHARED_BUFFERS", "0", "NCCL_PXN_DISABLE", "1", "NCCL_MIN_NCHANNELS", "8",
                        "NCCL_NCHANNELS_PER_NET_PEER", "4", "NCCL_ALLOC_P2P_NET_LL_BUFFERS", "1", "NCCL_LOCAL_REGISTER",
                        "0", "NCCL_GRAPH_REGISTER", "0", "NCCL_NET_GDR_READ", "1", "NCCL_P2P_NET_CHUNKSIZE", "524288"),
                settings.toSet());
    }

    @ParameterizedTest
    @CsvSource({"NCCL_ALLOC_P2P_NET_LL_BUFFERS, 0", "NCCL_LOCAL_REGISTER, 1", "NCCL_GRAPH_REGISTER, 1",
            "NCCL_PROTO, LL128", "NCCL_PROTO, 'LL,LL128'", "MILLRACE_UNPACK, 1", "NCCL_COLLNET_ENABLE, 1"})
    void aSettingThatForbidsThem(String name, String value) {
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> read(Map.of(name, value, "MILLRACE_DEVICE_SLOTS", "1")));
        assertTrue(refused.getMessage().contains(name + "=" + value), refused.getMessage());
        assertFalse(read(Map.of(name, value)).deviceSlots());
    }

    /**
     * NCCL's own proxy cannot use slots in GPU memory. A request for such slots is therefore refused if another setting
     * forbids the takeover.
     */
    @ParameterizedTest
    @CsvSource({"MILLRACE_TAKEOVER, 0", "NCCL_PXN_DISABLE, 0"})
    void slotsInTheGpusMemoryRequireATakeover(String name, String value) {
        assertFalse(read(Map.of(name, value)).takeover());
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> read(Map.of(name, value, "MILLRACE_DEVICE_SLOTS", "1")));
        assertTrue(refused.getMessage().contains("NCCL's own proxy ("), refused.getMessage());
        assertTrue(refused.getMessage().contains(name + "=" + value), refused.getMessage());
        assertTrue(refused.getMessage().endsWith("MILLRACE_DEVICE_SLOTS=1 requires them"), refused.getMessage());
    }

    @ParameterizedTest
    @CsvSource({"^LL128", "Simple", "LL"})
    void protocolsThatAllowThem(String protocols) {
        assertTrue(read(Map.of("NCCL_PROTO", protocols, "MILLRACE_DEVICE_SLOTS", "1")).deviceSlots());
    }

    @Test
    void theUserMayDeclineIt() {
        PluginConfiguration settings = read(Map.of("MILLRACE_TAKEOVER", "0", "NCCL_PXN_DISABLE", "0"));
        assertFalse(settings.takeover());
        assertNull(settings.refusal());
    }

    /** NCCL's proxy receives into slots that kernels poll, and no network stores lines of LL128 in order. */
    @Test
    void ncclsOwnProxyDoesNotGetLl128BehindTheGpusProcessor() {
        assertEquals(Map.of("NCCL_LL128_C2C", "0"), read(Map.of("MILLRACE_TAKEOVER", "0")).toSet());
        assertEquals(Map.of(), read(Map.of("MILLRACE_TAKEOVER", "0", "NCCL_LL128_C2C", "1")).toSet());
    }

    /** MILLRACE_TAKEOVER accepts the same words for yes and no as all other settings. */
    @Test
    void theWishIsReadAsEverySwitchIs() {
        assertTrue(read(Map.of("MILLRACE_TAKEOVER", "yes")).takeover());
        assertFalse(read(Map.of("MILLRACE_TAKEOVER", "off")).takeover());
    }

    @Test
    void anUnknownWishIsAnErrorThatListsWhatIsAllowed() {
        ConfigurationException refused =
                assertThrows(ConfigurationException.class, () -> read(Map.of("MILLRACE_TAKEOVER", "maybe")));
        assertTrue(refused.getMessage().startsWith("MILLRACE_TAKEOVER=maybe is not usable; allowed: 1"),
                refused.getMessage());
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "' -3x', -3", "0x10, 16", "010, 8", "08, 0", "true, 0", "'', 7", "99999999999999999999, 7"})
    void numbersAreReadAsNcclReadsThem(String text, long value) {
        assertEquals(value, Configuration.ofPlugin(Map.of("NCCL_X", text)::get).ncclNumber("NCCL_X", 7));
    }

    private static PluginConfiguration readByRccl(Map<String, String> environment) {
        return PluginConfiguration.of(new CallingLibrary(CallingLibrary.Vendor.RCCL, 22803, "librccl.so.1"),
                Configuration.ofPlugin(environment::get));
    }

    @Test
    void rcclIsTakenOverOnlyIfTheUserRequiresIt() {
        PluginConfiguration settings = readByRccl(Map.of());
        assertFalse(settings.takeover());
        assertEquals(Map.of(), settings.toSet());
        assertTrue(settings.refusal().contains("RCCL 2.28.3 (librccl.so.1): it was not tried on an AMD GPU"),
                settings.refusal());
        assertNull(readByRccl(Map.of("MILLRACE_TAKEOVER", "0")).refusal());
    }

    @Test
    void rcclIsTakenOverWithoutLL128() {
        PluginConfiguration settings = readByRccl(Map.of("MILLRACE_TAKEOVER", "1"));
        assertTrue(settings.takeover());
        assertFalse(settings.deviceSlots());
        assertEquals("^LL128", settings.toSet().get("NCCL_PROTO"));
        assertEquals("0", settings.toSet().get("RCCL_MSCCL_ENABLE"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {"Simple", "LL", "ll,Simple", "^LL128", "^ll128,LL", "^LL,LL128"})
    void aListWithoutLL128IsLeftToRccl(String protocols) {
        PluginConfiguration settings = readByRccl(Map.of("MILLRACE_TAKEOVER", "1", "NCCL_PROTO", protocols));
        assertTrue(settings.takeover());
        assertNull(settings.toSet().get("NCCL_PROTO"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"NCCL_PROTO | LL128", "NCCL_PROTO | LL,LL128,Simple", "NCCL_PROTO | ^LL",
                    "NCCL_PROTO | Simple;allreduce:LL128", "NCCL_PROTO | allreduce:LL", "RCCL_OVERRIDE_PROTO | LL128",
                    "RCCL_MSCCL_ENABLE | 1"})
    void aSettingThatAllowsLL128ToRcclIsNamed(String name, String value) {
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> readByRccl(Map.of("MILLRACE_TAKEOVER", "1", name, value)));
        assertTrue(refused.getMessage().contains(name + "=" + value + " ("), refused.getMessage());
    }

    @ParameterizedTest
    @CsvSource({"MILLRACE_DEVICE_SLOTS, 1", "MILLRACE_DEVICE_SLOTS, 0", "MILLRACE_DEVICE_SLOTS, ''",
            "MILLRACE_UNPACK, 1", "MILLRACE_UNPACK, 0", "MILLRACE_UNPACK, ''"})
    void slotsInGpuMemoryAndUnpackAreRefusedUnderRccl(String name, String takeover) {
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> readByRccl(Map.of("MILLRACE_TAKEOVER", takeover, name, "1")));
        assertTrue(refused.getMessage().contains("RCCL 2.28.3"), refused.getMessage());
        assertTrue(refused.getMessage().contains(name), refused.getMessage());
    }

    @Test
    void aRequiredTakeoverWithAinicCardsIsAnError() {
        assertFalse(readByRccl(Map.of("RCCL_AINIC_ROCE", "1")).takeover());
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> readByRccl(Map.of("RCCL_AINIC_ROCE", "1", "MILLRACE_TAKEOVER", "1")));
        assertTrue(refused.getMessage().contains("RCCL_AINIC_ROCE=0 keeps it from using them"), refused.getMessage());
    }

    /**
     * MILLRACE_TAKEOVER=1 requires a takeover. Without this setting, a library that cannot be taken over keeps its
     * proxy.
     */
    @ParameterizedTest
    @CsvSource({"RCCL, 22606", "RCCL, 23102", "NCCL, 23301", "UNKNOWN, 22809"})
    void aRequiredTakeoverOfAnUnknownLayoutIsAnError(CallingLibrary.Vendor vendor, int version) {
        CallingLibrary library = new CallingLibrary(vendor, version, "libxccl.so.1");
        String refusal = PluginConfiguration.of(library, Configuration.ofPlugin(name -> null)).refusal();
        assertTrue(refusal.contains(library.toString()), refusal);
        ConfigurationException refused = assertThrows(ConfigurationException.class,
                () -> PluginConfiguration.of(library, Configuration.ofPlugin(Map.of("MILLRACE_TAKEOVER", "1")::get)));
        assertTrue(refused.getMessage().contains(library.toString()), refused.getMessage());
        assertTrue(refused.getMessage().endsWith("MILLRACE_TAKEOVER=1 requires it"), refused.getMessage());
    }
}
