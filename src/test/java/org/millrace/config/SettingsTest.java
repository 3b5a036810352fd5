package org.millrace.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.api.Test;

class SettingsTest {

    @Test
    void everyConstantIsListedOnce() {
        long constants = Arrays.stream(Settings.class.getFields())
                .filter(field -> field.getType() == Setting.class && Modifier.isStatic(field.getModifiers()))
                .count();
        assertEquals(constants, Settings.all().size());
        Set<String> names = new HashSet<>();
        Settings.all().forEach(setting -> assertTrue(names.add(setting.name()), setting.name()));
    }

    @Test
    void namesDescriptionsAndDefaultsAreSound() {
        for (Setting<?> setting : Settings.all()) {
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
