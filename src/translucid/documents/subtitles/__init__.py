"""SubRip and WebVTT subtitles."""
