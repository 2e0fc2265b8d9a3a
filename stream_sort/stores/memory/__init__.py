"""The same guarantees in dicts, with no AWS; nothing survives the process."""

from stream_sort.stores.memory.tables import MemoryTables as MemoryTables
