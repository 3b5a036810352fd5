package org.millrace.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

class SettingsTest {

    @Test
    void everyConstantIsListedOnce() {
        assertEquals(constants(Settings.class) + constants(SecuritySettings.class), Settings.all().size());
        assertEquals(constants(PluginSettings.class), PluginSettings.all().size());
        Set<String> names = new HashSet<>();
        all().forEach(setting -> assertTrue(names.add(setting.name()), setting.name()));
    }

    private static long constants(Class<?> of) {
        return Arrays.stream(of.getFields())
                .filter(field -> field.getType() == Setting.class && Modifier.isStatic(field.getModifiers()))
                .count();
    }

    private static List<Setting<?>> all() {
        List<Setting<?>> all = new ArrayList<>(Settings.all());
        all.addAll(PluginSettings.all());
        return all;
    }

    @Test
    void namesDescriptionsAndDefaultsAreSound() {
        for (Setting<?> setting : all()) {
            assertTrue(setting.name().matches("(NCCL|MILLRACE)_[A-Z0-9_]+"), setting.name());
            assertFalse(setting.description().contains("\n"), setting.name());
            assertFalse(setting.type().allowed().isBlank(), setting.name());
            assertDefaultIsReadable(setting);
        }
        assertEquals("millrace.nccl.library", Settings.NCCL_LIBRARY.property());
    }

    private static <T> void assertDefaultIsReadable(Setting<T> setting) {
        T value = setting.defaultValue();
        if (!value.equals(Optional.empty()) && !value.equals("")) {
            assertEquals(value, setting.type().parse(setting.type().format(value)), setting.name());
        }
    }
}
