"""python -m ludus"""

from ludus.cli import main

main()
