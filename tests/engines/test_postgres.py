"""PostgreSQL: the server counts what the array engine counts; what goes wrong there is one line."""

from candide.engines.base import engine
from candide.testing import check_engine


def test_it_keeps_the_laws(postgres):
    check_engine(engine("postgres"), postgres.make)
