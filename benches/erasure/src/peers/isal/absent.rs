//! No entries where ISA-L is not linked.

use crate::{
    Error,
    cases::{block::Block, decode::Losses, encode::Single, matmul::Product},
    measure::Race,
};
use std::rc::Rc;

pub fn single<'a>(_: &mut Race<'a>, _: &Single<'a>) -> Result<(), Error> {
    Ok(())
}

pub fn narrow<'a>(_: &mut Race<'a>, _: &Single<'a>) -> Result<(), Error> {
    Ok(())
}

pub fn product<'a>(_: &mut Race<'a>, _: &Product<'a>) -> Result<(), Error> {
    Ok(())
}

pub fn decode<'a>(_: &mut Race<'a>, _: &Rc<Losses<'a>>) -> Result<(), Error> {
    Ok(())
}

pub fn rs_encode<'a>(_: &mut Race<'a>, _: &Rc<Block<'a>>) -> Result<(), Error> {
    Ok(())
}

pub fn rs_decode<'a>(_: &mut Race<'a>, _: &Rc<Block<'a>>) -> Result<(), Error> {
    Ok(())
}

pub fn xor<'a>(_: &mut Race<'a>, _: &Single<'a>) -> Result<(), Error> {
    Ok(())
}
