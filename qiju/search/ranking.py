"""ranking placeholder"""
