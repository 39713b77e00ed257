"""Large texts, window by window: in this process, in several, or on a Ray cluster; resumable after any end."""
